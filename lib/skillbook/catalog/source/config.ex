defmodule Skillbook.Source.Config do
  @moduledoc false
  # Reads a JSON file with sources and returns items of `Skillbook.Source.list/1`.

  alias Skillbook.Support.{Closest, JSON, Options, ReadFile, UntilError}
  alias Skillbook.{ConfigError, Native}

  @max_bytes 1024 * 1024

  @kinds %{"skills" => :skills, "notes" => :notes}
  @trusts %{"none" => :none, "low" => :low, "medium" => :medium, "high" => :high}

  @doc "Returns the options of `Skillbook.Source`, or the item of an MCP server, for each source."
  @spec read(Path.t(), String.t() | nil) ::
          {:ok, [keyword() | {:mcp, String.t() | [String.t()], keyword()}]}
          | {:error, ConfigError.t()}
  def read(path, agent) do
    with {:ok, text} <- read_file(path),
         {:ok, value} <- decode(text),
         {:ok, sources} <- choose(value, agent, text) do
      {:ok, sources}
    else
      {:error, fields} -> {:error, struct!(ConfigError, [path: path] ++ fields)}
    end
  end

  defp choose(value, agent, text) do
    with {:ok, config, at} <- config(value, agent),
         {:ok, sources} <- sources(config, at) do
      {:ok, sources}
    else
      {:error, {at, part, reason}} ->
        {line, column} = Native.json_place(text, at, part)
        {:error, line: line, column: column, at: show_path(at), reason: reason}
    end
  end

  defp read_file(path) do
    with {:ok, %{type: :regular, size: size}} when size <= @max_bytes <- File.stat(path),
         {:ok, text} <- ReadFile.read(path, @max_bytes) do
      {:ok, text}
    else
      {:ok, %{type: :regular, size: size}} ->
        {:error, reason: "expected a file of up to #{@max_bytes} bytes, got one of #{size}"}

      {:ok, %{type: type}} ->
        {:error, reason: "expected a file, got a #{type}"}

      {:error, reason} ->
        {:error, reason: "cannot be read: #{:file.format_error(reason)}"}
    end
  end

  defp decode(text) do
    with {:error, error} <- JSON.decode(text) do
      {:error,
       line: error.line, column: error.column, at: show_path(error.path), reason: error.reason}
    end
  end

  # A path is a list of keys and of numbers from 0.

  defp show_path([]), do: nil

  defp show_path([first | rest]) do
    Enum.reduce(rest, show_step(first), fn
      number, path when is_integer(number) -> path <> show_step(number)
      key, path -> path <> "." <> show_step(key)
    end)
  end

  defp show_step(number) when is_integer(number), do: "[#{number}]"
  defp show_step(key), do: if(key =~ ~r/^[\w-]+$/u, do: key, else: inspect(key))

  # Returns the object with the `skills` of the agent, and its path.

  defp config(%{"agents" => agents} = config, agent) when is_list(agents) do
    cond do
      agent ->
        agent(agents, agent, &["agents", &1], ["agents"])

      Map.has_key?(config, "skills") ->
        {:ok, config, []}

      true ->
        error(
          ["agents"],
          "it has several agents; name one with the option :agent. #{known(agents)}"
        )
    end
  end

  defp config(%{"agents" => agents}, _agent),
    do: error(["agents"], "expected a list of objects, got: #{show(agents)}")

  defp config(%{} = config, nil), do: {:ok, config, []}

  defp config(%{"agentId" => _} = config, agent),
    do: agent([config], agent, fn 0 -> [] end, ["agentId"])

  defp config(%{}, agent), do: agent([], agent, & &1, [])

  defp config(value, _agent),
    do: error([], "expected an object with `skills` or `agents`, got: #{show(value)}")

  defp agent(agents, id, path, at) do
    case Enum.find_index(agents, &match?(%{"agentId" => ^id}, &1)) do
      nil ->
        error(
          at,
          "there is no agent #{inspect(id)}#{did_you_mean(id, ids(agents))} #{known(agents)}"
        )

      number ->
        {:ok, Enum.at(agents, number), path.(number)}
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
    at = at ++ ["skills"]

    case config["skills"] do
      nil ->
        {:ok, []}

      list when is_list(list) ->
        list
        |> Enum.with_index()
        |> UntilError.map(fn {item, number} -> source(item, at ++ [number]) end)

      other ->
        error(at, "expected a list, got: #{show(other)}")
    end
  end

  defp source(root, at) when is_binary(root) do
    with {:ok, root} <- text(root, at, "a path, or an object with `root`"),
         do: {:ok, [path: root]}
  end

  defp source(%{"mcp" => place} = item, at) do
    with {:ok, place} <- place(place, at ++ ["mcp"]),
         item = item |> Map.delete("mcp") |> Enum.sort(),
         {:ok, options} <- UntilError.map(item, &option(&1, at, server_keys(), ["mcp"])),
         options = Enum.reject(options, fn {_option, value} -> is_nil(value) end),
         {:ok, _settings} <- server(place, options, at),
         do: {:ok, {:mcp, place, options}}
  end

  defp source(%{} = item, at) do
    with {:ok, options} <- item |> Enum.sort() |> UntilError.map(&option(&1, at, keys(), [])) do
      options = Enum.reject(options, fn {_option, value} -> is_nil(value) end)

      if options[:path],
        do: {:ok, options},
        else: error(at, "expected the key \"root\", the folder of the skills")
    end
  end

  defp source(other, at),
    do: error(at, "expected a path, or an object with `root`, got: #{show(other)}")

  defp place(text, _at) when is_binary(text), do: {:ok, text}
  defp place(list, at) when is_list(list), do: texts(list, at, "text", "a list of texts")
  defp place(_other, at), do: error(at, "expected a URL, or a list with a program and arguments")

  # The rules of options are those of `{:mcp, place, options}`.
  defp server(place, options, at) do
    case Skillbook.Source.list([{:mcp, place, options}]) do
      {:error, problem} -> error(at, Exception.message(problem))
      found -> found
    end
  end

  defp option({key, value}, at, keys, more) do
    at = at ++ [key]

    case Map.fetch(keys, key) do
      # `null` counts as absent.
      {:ok, {option, _read}} when is_nil(value) ->
        {:ok, {option, nil}}

      {:ok, {option, read}} ->
        with {:ok, value} <- read.(value, at), do: {:ok, {option, value}}

      :error ->
        known = Enum.sort(Map.keys(keys) ++ more)
        reason = "unknown key#{did_you_mean(key, known)} The keys are #{Enum.join(known, ", ")}"
        {:error, {at, :key, reason}}
    end
  end

  defp keys do
    %{
      "root" => {:path, &text(&1, &2, "a path")},
      "available" => {:available, &globs/2},
      "inline" => {:inline, &globs/2},
      "name" => {:name, &text(&1, &2, "text")},
      "kind" => {:kind, &one_of(&1, &2, @kinds, ~s("skills" or "notes"))},
      "labels" => {:labels, &texts(&1, &2, "text", "a list of texts")},
      "tenant" => {:tenant, &text(&1, &2, "text")},
      "trust" => {:trust, &one_of(&1, &2, @trusts, ~s("none", "low", "medium" or "high"))},
      "optional" => {:optional, &boolean/2}
    }
  end

  # The keys of an MCP server.
  defp server_keys do
    %{
      "label" => {:label, &text(&1, &2, "text")},
      "token" => {:token, &variable/2},
      "oauth" => {:oauth, &boolean/2},
      "lock" => {:lock, &text(&1, &2, "a path")},
      "tools" => {:tools, &boolean_or_globs/2},
      "prompts" => {:prompts, &boolean_or_globs/2},
      "skills" => {:skills, &boolean/2},
      "read" => {:read, &globs/2},
      "labels" => {:labels, &texts(&1, &2, "text", "a list of texts")},
      "tenant" => {:tenant, &text(&1, &2, "text")},
      "optional" => {:optional, &boolean/2}
    }
  end

  # A file that people share has no secrets in it.
  defp variable(%{"env" => name} = value, at) when map_size(value) == 1 do
    with {:ok, name} <- text(name, at ++ ["env"], "the name of a variable"),
         do: {:ok, {:env, name}}
  end

  defp variable(_other, at), do: error(at, ~s(expected {"env": "NAME"}, the name of a variable))

  defp boolean_or_globs(value, _at) when is_boolean(value), do: {:ok, value}
  defp boolean_or_globs(value, at) when is_list(value), do: globs(value, at)
  defp boolean_or_globs(_value, at), do: error(at, "expected true, false or a list of globs")

  defp text(value, at, expected) do
    if Options.text?(value),
      do: {:ok, value},
      else: error(at, "expected #{expected}, got: #{show(value)}")
  end

  defp texts(values, at, expected, _list) when is_list(values) do
    values
    |> Enum.with_index()
    |> UntilError.map(fn {value, number} -> text(value, at ++ [number], expected) end)
  end

  defp texts(value, at, _expected, list), do: error(at, "expected #{list}, got: #{show(value)}")

  defp globs(values, at) do
    with {:ok, globs} <- texts(values, at, "a glob", "a list of globs"),
         {:error, {glob, reason}} <- Native.globs_check(globs) do
      number = Enum.find_index(globs, &(&1 == glob))
      error(at ++ [number], "expected a glob (#{reason}), got: #{show(glob)}")
    else
      :ok -> {:ok, values}
      {:error, error} -> {:error, error}
    end
  end

  defp one_of(value, at, values, expected) do
    with :error <- Map.fetch(values, value),
         do: error(at, "expected #{expected}, got: #{show(value)}")
  end

  defp boolean(value, at) do
    if is_boolean(value),
      do: {:ok, value},
      else: error(at, "expected true or false, got: #{show(value)}")
  end

  defp did_you_mean(word, known) do
    case Closest.to(word, known) do
      nil -> "."
      close -> ", did you mean #{inspect(close)}?"
    end
  end

  # Describes a value in terms of JSON.
  defp show(nil), do: "null"
  defp show(value) when is_map(value), do: "an object"
  defp show([]), do: "an empty list"
  defp show(value) when is_list(value), do: "a list"
  defp show(value), do: inspect(value, printable_limit: 60)

  defp error(at, reason), do: {:error, {at, :value, reason}}
end
