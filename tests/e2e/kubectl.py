"""kubectl, as the tests run it."""

import json
import os
import shutil
import subprocess

KUBECTL = os.environ.get("RW_E2E_KUBECTL") or shutil.which("kubectl")


class Kubectl:
    """kubectl for one cluster; a call expects success, and returns what is printed. `stdin` may be an object, which is handed over as
    JSON; `env` is added to the environment."""

    def __init__(self, kubeconfig, cache, program=None, namespace=None):
        self._words = [program or KUBECTL, "--kubeconfig", str(kubeconfig), "--cache-dir", str(cache)]
        self._words += ["--namespace", namespace] if namespace else []

    def command(self, *arguments):
        return [*self._words, *map(str, arguments)]

    def attempt(self, *arguments, stdin=None, env=None):
        text = stdin if stdin is None or isinstance(stdin, str) else json.dumps(stdin)
        return subprocess.run(self.command(*arguments), input=text, text=True, capture_output=True, timeout=60,
                              env={**os.environ, **(env or {})})

    def __call__(self, *arguments, stdin=None, env=None):
        done = self.attempt(*arguments, stdin=stdin, env=env)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def knows(self, command, option):
        return option in self(command, "--help")
