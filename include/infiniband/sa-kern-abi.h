/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Kept for old programs: the path record of <rdma/ib_user_sa.h> by its former names.
 */
#ifndef INFINIBAND_SA_KERN_ABI_H
#define INFINIBAND_SA_KERN_ABI_H

#warning "infiniband/sa-kern-abi.h is obsolete: use rdma/ib_user_sa.h"

#include <rdma/ib_user_sa.h>

#define ib_kern_path_rec  ib_user_path_rec
#define ibv_kern_path_rec ib_user_path_rec

#endif
