# Real documents of other people's, which are not part of this repository.
corpus = System.get_env("SKILLBOOK_CORPUS", Path.expand("../../shared/corpus/skills", __DIR__))
Application.put_env(:skillbook, :corpus, corpus)

# For as long as this process lives.
:telemetry.start()

# A busy machine needs minutes for work that takes seconds on a quiet one; only a real hang
# reaches this limit.
# `:guard` measures times, which bin/test does while nothing else runs.
exclude = if File.dir?(corpus), do: [:guard], else: [:guard, :corpus]
ExUnit.start(timeout: 600_000, assert_receive_timeout: 60_000, exclude: exclude)
