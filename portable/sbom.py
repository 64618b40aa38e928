#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Usage: portable/sbom.py NAME VERSION FOLDER
Prints a software bill of materials (SPDX 2.3, JSON) of an archive that has the files of FOLDER: each with its checksums, and what
they are linked with. The time is SOURCE_DATE_EPOCH, so that the same files give the same text."""

import datetime
import hashlib
import json
import os
import sys

LICENCE = "BSD-2-Clause OR GPL-2.0-only"


def checksums(path):
    with open(path, "rb") as handle:
        content = handle.read()
    return [{"algorithm": name.upper(), "checksumValue": hashlib.new(name, content).hexdigest()} for name in ("sha1", "sha256")]


def files(folder):
    for top, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(top, name)
            if not os.path.islink(path):
                yield os.path.relpath(path, folder), checksums(path)


def main():
    name, version, folder = sys.argv[1:]
    entries = [{"SPDXID": f"SPDXRef-File-{number}", "fileName": f"./{path}", "checksums": sums, "licenseConcluded": LICENCE,
                "copyrightText": "NOASSERTION"} for number, (path, sums) in enumerate(files(folder))]
    code = hashlib.sha1("".join(sorted(entry["checksums"][0]["checksumValue"] for entry in entries)).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    json.dump({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": f"urn:verbatim:{name}:{code}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: verbatim/portable/sbom.py"]},
        "packages": [
            {"SPDXID": "SPDXRef-verbatim", "name": "verbatim", "versionInfo": version, "downloadLocation": "NOASSERTION",
             "licenseConcluded": LICENCE, "licenseDeclared": LICENCE, "copyrightText": "The verbatim authors", "filesAnalyzed": True,
             "packageVerificationCode": {"packageVerificationCodeValue": code}},
            {"SPDXID": "SPDXRef-glibc", "name": "glibc", "versionInfo": "2.28 or later, of the system", "downloadLocation": "NOASSERTION",
             "licenseConcluded": "LGPL-2.1-or-later", "licenseDeclared": "LGPL-2.1-or-later", "copyrightText": "NOASSERTION",
             "filesAnalyzed": False}],
        "files": entries,
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-verbatim"},
            {"spdxElementId": "SPDXRef-verbatim", "relationshipType": "DYNAMIC_LINK", "relatedSpdxElement": "SPDXRef-glibc"},
            *({"spdxElementId": "SPDXRef-verbatim", "relationshipType": "CONTAINS", "relatedSpdxElement": entry["SPDXID"]}
              for entry in entries)],
    }, sys.stdout, indent=1)
    print()


main()
