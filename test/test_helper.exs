# Real documents of other people's, which are not part of this repository.
corpus = System.get_env("SKILLBOOK_CORPUS", "../shared/corpus/skills")
Application.put_env(:skillbook, :corpus, corpus)

# For as long as this process lives.
:telemetry.start()

ExUnit.start(exclude: if(File.dir?(corpus), do: [], else: [:corpus]))
