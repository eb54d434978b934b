"""Generates the requests of the interface from its description."""

import os
import pathlib
import subprocess
import sys

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGET = "grid_batch_client/api_client"


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        root = pathlib.Path(self.root)
        # A source distribution has a copy.
        candidates = [root / "openapi.json", root / "../../docs/openapi.json"]
        description = next(path for path in candidates if path.exists())
        generate = ["openapi_python_client", "generate", "--meta", "none", "--overwrite", "--fail-on-warning"]
        paths = ["--path", str(description), "--output-path", str(root / TARGET)]
        # The generator formats with a program of the same environment.
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
        command = [sys.executable, "-m", *generate, *paths]
        subprocess.run(command, check=True, stdout=sys.stderr, env={**os.environ, "PATH": path})
        build_data["artifacts"].append(f"/{TARGET}")
