defmodule Skillbook.Source.Config do
  @moduledoc false
  # What a JSON file says of sources, as options of `Skillbook.Source`.

  alias Skillbook.{Closest, ConfigError, JSON, Options}

  @largest 1024 * 1024

  @kinds %{"skills" => :skills, "notes" => :notes}
  @trusts %{"none" => :none, "low" => :low, "medium" => :medium, "high" => :high}

  @doc "For each source its place in the file and its options."
  @spec read(Path.t(), String.t() | nil) :: {:ok, [{String.t(), keyword()}]} | {:error, ConfigError.t()}
  def read(path, agent) do
    with {:ok, text} <- read_file(path),
         {:ok, value} <- decode(text),
         {:ok, config, at} <- config(value, agent),
         {:ok, sources} <- sources(config, at) do
      {:ok, sources}
    else
      {:error, fields} -> {:error, struct!(ConfigError, [path: path] ++ fields)}
    end
  end

  defp read_file(path) do
    with {:ok, %{type: :regular, size: size}} when size <= @largest <- File.stat(path),
         {:ok, text} <- File.read(path) do
      {:ok, text}
    else
      {:ok, %{type: :regular, size: size}} ->
        error(nil, "expected a file of up to #{@largest} bytes, got one of #{size}")

      {:ok, %{type: type}} ->
        error(nil, "expected a file, got a #{type}")

      {:error, reason} ->
        error(nil, "cannot be read: #{:file.format_error(reason)}")
    end
  end

  defp decode(text) do
    with {:error, error} <- JSON.decode(text),
         do: {:error, line: error.line, column: error.column, reason: error.reason}
  end

  # The object whose `skills` count, and its place.

  defp config(%{"agents" => agents} = config, agent) when is_list(agents) do
    cond do
      agent -> agent(agents, agent)
      Map.has_key?(config, "skills") -> {:ok, config, ""}
      true -> error(nil, "it has several agents; name one with the option :agent. #{known(agents)}")
    end
  end

  defp config(%{"agents" => agents}, _agent),
    do: error("agents", "expected a list of objects, got: #{show(agents)}")

  defp config(%{} = config, nil), do: {:ok, config, ""}
  defp config(%{"agentId" => agent} = config, agent), do: {:ok, config, ""}
  defp config(%{} = config, agent), do: agent(List.wrap(config["agentId"] && config), agent)

  defp config(value, _agent),
    do: error(nil, "expected an object with `skills` or `agents`, got: #{show(value)}")

  defp agent(agents, id) do
    case Enum.find_index(agents, &match?(%{"agentId" => ^id}, &1)) do
      nil -> error(nil, "there is no agent #{inspect(id)}#{did_you_mean(id, ids(agents))} #{known(agents)}")
      place -> {:ok, Enum.at(agents, place), "agents[#{place}]."}
    end
  end

  defp known(agents) do
    case ids(agents) do
      [] -> "It names no agents"
      ids -> "Its agents are " <> Enum.map_join(ids, ", ", &inspect/1)
    end
  end

  defp ids(agents), do: for(%{"agentId" => id} when is_binary(id) <- agents, do: id)

  # The sources

  defp sources(config, at) do
    case config["skills"] do
      nil -> {:ok, []}
      list when is_list(list) -> list |> Enum.with_index() |> Options.each(&source(&1, "#{at}skills"))
      other -> error("#{at}skills", "expected a list, got: #{show(other)}")
    end
  end

  defp source({item, number}, at) do
    at = "#{at}[#{number}]"

    case item do
      root when is_binary(root) -> source(%{"root" => root}, at)
      %{} -> source(item, at)
      other -> error(at, "expected an object with `root`, or a path, got: #{show(other)}")
    end
  end

  defp source(item, at) do
    with {:ok, options} <- item |> Enum.sort() |> Options.each(&option(&1, at)) do
      options = Enum.reject(options, fn {_option, value} -> is_nil(value) end)

      if options[:path],
        do: {:ok, {at, options}},
        else: error(at, "expected the key \"root\", the folder of the skills")
    end
  end

  defp option({key, value}, at) do
    case Map.fetch(keys(), key) do
      # As if it were not written.
      {:ok, {option, _expected, _check}} when is_nil(value) ->
        {:ok, {option, nil}}

      {:ok, {option, expected, check}} ->
        case check.(value) do
          {:ok, value} -> {:ok, {option, value}}
          :error -> error("#{at}.#{key}", "expected #{expected}, got: #{show(value)}")
        end

      :error ->
        known = Enum.sort(Map.keys(keys()))

        error(
          at,
          "unknown key #{show(key)}#{did_you_mean(key, known)} The keys are #{Enum.join(known, ", ")}"
        )
    end
  end

  defp keys do
    texts = "a list of texts"

    %{
      "root" => {:path, "a path", &text/1},
      "available" => {:available, texts, &texts/1},
      "inline" => {:inline, texts, &texts/1},
      "name" => {:name, "text", &text/1},
      "kind" => {:kind, ~s("skills" or "notes"), &Map.fetch(@kinds, &1)},
      "labels" => {:labels, texts, &texts/1},
      "trust" => {:trust, ~s("none", "low", "medium" or "high"), &Map.fetch(@trusts, &1)},
      "optional" => {:optional, "true or false", &boolean/1}
    }
  end

  defp text(value), do: if(Options.text?(value), do: {:ok, value}, else: :error)

  defp texts(value), do: if(Options.texts?(value), do: {:ok, value}, else: :error)

  defp boolean(value), do: if(is_boolean(value), do: {:ok, value}, else: :error)

  defp did_you_mean(word, known) do
    case Closest.to(word, known) do
      nil -> "."
      close -> ", did you mean #{inspect(close)}?"
    end
  end

  defp show(value), do: inspect(value, limit: 5, printable_limit: 60)

  defp error(at, reason), do: {:error, at: at, reason: reason}
end
