# Every target makes its own virtual environment: nothing but python3 (3.11 or newer) needs to be there.
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/stamp

.PHONY: venv
venv: $(STAMP)

$(STAMP): pyproject.toml setup.py .ci/venv
	@PYTHON="$(PYTHON)" .ci/venv $(VENV)
