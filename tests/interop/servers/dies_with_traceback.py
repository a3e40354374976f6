"""Never starts: status 1 and a traceback on stderr, before anything is read."""


def read_settings():
    raise FileNotFoundError("settings.toml: no such file")


read_settings()
