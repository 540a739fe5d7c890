defmodule Skillbook.Tools do
  @moduledoc """
  Commands and skills as the tools of a model's interface: definitions with JSON Schema, and the calls that come back.

  It is another way in to the same commands: a call goes through the router and the executor as the command that it
  stands for, with the same checks, limits and results.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> [_get_skill, tool] = Skillbook.Tools.definitions(view, shape: :anthropic, names: ["tasks.get"])
      iex> tool["name"]
      "tasks__get"
      iex> tool["input_schema"]["required"]
      ["id"]
      iex> call = %{"type" => "tool_use", "id" => "toolu_1", "name" => "tasks__get", "input" => %{"ib" => "T-1"}}
      iex> {%Skillbook.Result{status: :error}, answer} = Skillbook.Tools.call(view, call)
      iex> {answer["tool_use_id"], answer["is_error"]}
      {"toolu_1", true}
  """

  alias Skillbook.Reply.Pipeline
  alias Skillbook.Support.{Closest, JSON, Options}
  alias Skillbook.{Declaration, Entry, Flag, Native, OptionError, Result, ToolCallError, View}

  alias Skillbook.Reply.ToolCall
  alias Skillbook.Tools.{Name, Schema}

  @get_skill "get_skill"

  # OpenAI's limits, the narrowest ones.
  @limit 128
  @longest 1024

  # How close a name must come to one that a page chose.
  @near 0.9

  @type shape :: :openai | :anthropic | :mcp

  @doc """
  The tools of a view: `get_skill` first, then the commands and skills that a model is told of, by name.

  They are maps with string keys, ready for any JSON encoder. Dots in names are written `__`
  (`tasks__search`); a name with other characters than letters, digits, `.`, `_` and `-` gets some
  of its hash at its end. A page may choose the tool's name (`tool: create_skill`). Dashes in the
  names of flags are written `_`. Notes are no tools; `get_skill` reads them. A flag's schema has
  what its page plainly says (`Skillbook.Declaration`), and nothing more; other properties are
  refused where the flags are checked before it runs: of commands with a handler, and of pages with
  `strict: true`.

  ## Options

    * `:shape` - `:openai` (the default, `{"type": "function", "function": {…}}`), `:anthropic` (`input_schema`) or `:mcp`
      (`inputSchema`, with `annotations.readOnlyHint`)
    * `:names` - globs over the names of entries, as in `Skillbook.Profile`; all if it is left out
    * `:limit` - how many tools there may be, `get_skill` among them, from 1; #{@limit} by default. The description of
      `get_skill` says how many are left out
  """
  @spec definitions(View.t(), keyword()) :: [map()]
  def definitions(%View{} = view, options \\ []) do
    with {:error, error} <- Options.validate(options, "tool definitions", schema()),
         do: raise(error)

    shape = Keyword.get(options, :shape, :openai)
    limit = Keyword.get(options, :limit, @limit)

    entries =
      for kind <- [:command, :skill],
          entry <- View.entries(view, kind: kind),
          not entry.hidden_from_model and entry.name != @get_skill,
          do: entry

    {shown, left_out} =
      entries |> named(options[:names]) |> Enum.sort_by(& &1.name) |> Enum.split(limit - 1)

    for tool <- [get_skill(length(left_out)) | Enum.map(shown, &tool(view, &1))],
        do: shape(tool, shape)
  end

  @doc false
  # The commands and skills that a model is told of and globs name, by name.
  @spec listed(View.t(), [String.t()] | nil) :: [Entry.t()]
  def listed(view, globs) do
    entries =
      for entry <- View.entries(view),
          entry.kind != :note and not entry.hidden_from_model and entry.name != @get_skill,
          do: entry

    named(entries, globs)
  end

  @doc """
  Runs a tool call, and gives its result and the answer to send back in the form of the call.

  The call is a map, decoded from JSON or with atoms for keys, in one of these forms:

    * OpenAI: `{"id", "function": {"name", "arguments": JSON text}}`, answered with `{"role": "tool", …}`; of the Responses
      interface `{"type": "function_call", "call_id", "name", "arguments"}`, answered with `function_call_output`
    * Anthropic: `{"type": "tool_use", "id", "name", "input"}`, answered with `tool_result`
    * MCP: `{"name", "arguments"}`, the `params` of `tools/call`, answered with `{"content": […], "isError"}`

  Whatever is wrong with a call is a result of the status `:error` whose text tells the model what to write instead. A name
  that the view does not show is unknown in every way. Takes the options of `Skillbook.run/3` but `:unclosed`.
  """
  @spec call(View.t(), map(), keyword()) :: {Result.t(), map()}
  def call(%View{} = view, call, options \\ []) do
    call = ToolCall.read(call)

    result =
      with {:ok, name} <- entry_name(view, call),
           {:ok, arguments} <- arguments(call, name) do
        [result] = Pipeline.commands(view, [ToolCall.line(name, arguments)], options)
        result
      else
        {:error, {error, name}} -> failed(%{error | example: example(view, name)})
        {:error, error} -> failed(error)
      end

    {result, ToolCall.answer(call, result)}
  end

  defp failed(error), do: %{Result.error(error) | duration: 0}

  defp arguments(call, name),
    do: with({:error, error} <- ToolCall.arguments(call), do: {:error, {error, name}})

  # The flags that must be there, or else the first one.
  defp example(_view, @get_skill), do: ~s({"path": "NAME"})

  defp example(view, name) do
    flags =
      with %Declaration{flags: flags} <- declaration(view, name), do: flags, else: (nil -> [])

    shown = with [] <- Enum.filter(flags, & &1.required), do: Enum.take(flags, 1)
    "{#{Enum.map_join(shown, ", ", &~s("#{Schema.name(&1.name)}": #{example(&1)}))}}"
  end

  defp example(%Flag{type: :switch}), do: "true"
  defp example(%Flag{type: :integer} = flag), do: to_string(flag.min || flag.max || 10)
  defp example(%Flag{type: :number}), do: "2.5"
  defp example(%Flag{type: :date}), do: ~s("2026-03-01")
  defp example(%Flag{type: :one_of, values: [value | _]}), do: value |> JSON.encode()
  defp example(_flag), do: ~s("VALUE")

  defp entry_name(_view, %ToolCall{name: @get_skill}), do: {:ok, @get_skill}

  defp entry_name(view, %ToolCall{name: tool}) when is_binary(tool) and tool != "" do
    name = if String.valid?(tool), do: Name.resolve(view, tool), else: tool

    case View.fetch(view, name) do
      {:ok, entry} -> {:ok, entry.name}
      {:error, error} -> {:error, unknown(view, tool, error.suggestions)}
    end
  end

  defp entry_name(_view, _call), do: {:error, %ToolCallError{kind: :call}}

  # Names that pages chose are no entries' names.
  defp unknown(view, tool, suggestions) do
    name = if String.valid?(tool), do: tool, else: inspect(tool)
    chosen = for %{data: %{"tool" => _}} = entry <- listed(view, nil), do: Name.of(view, entry)

    tools =
      for name <- suggestions, {:ok, entry} <- [View.fetch(view, name)], do: Name.of(view, entry)

    near = name |> Closest.to(chosen, @near) |> List.wrap()

    %ToolCallError{
      kind: :unknown,
      name: name,
      suggestions: Enum.take(Enum.uniq(near ++ tools), 3)
    }
  end

  defp named(entries, nil), do: entries

  defp named(entries, globs) do
    case Native.globs_filter(globs, Enum.map(entries, & &1.name)) do
      {:ok, names} ->
        names = MapSet.new(names)
        Enum.filter(entries, &(&1.name in names))

      {:error, {glob, reason}} ->
        raise %OptionError{
          subject: "globs over names",
          option: :names,
          problem: {:invalid, "globs (#{reason})", glob}
        }
    end
  end

  defp tool(view, entry) do
    declaration = declaration(view, entry.name)

    %{
      name: Name.of(view, entry),
      title: entry.title,
      description: description(entry, declaration),
      schema: Schema.object(declaration, entry.strict or entry.handler != nil),
      reads: Entry.effect(entry) == :read
    }
  end

  defp declaration(_view, @get_skill), do: nil

  defp declaration(view, name) do
    case View.flags(view, name) do
      {:ok, declaration} -> declaration
      {:error, _} -> nil
    end
  end

  defp get_skill(left_out) do
    more = if left_out == 0, do: "", else: " #{left_out} more are no tools for lack of room."

    %{
      name: @get_skill,
      title: nil,
      description:
        "Read about commands and skills: without a path the list of all there is, with one a domain, " <>
          "the page of a command or the instructions of a skill." <> more,
      schema: %{
        "type" => "object",
        "properties" => %{
          "path" => %{
            "type" => "string",
            "description" => "DOMAIN, DOMAIN.ACTION, DOMAIN.all, SKILL or SKILL/FILE"
          }
        }
      },
      reads: true
    }
  end

  defp description(entry, declaration) do
    [one_line(entry.description), usage(entry, declaration) | choices(declaration)]
    |> Enum.reject(&(&1 == ""))
    |> Enum.join(" ")
    |> bounded()
  end

  # Where no flag is declared, the usage is all that says what to write.
  defp usage(%{kind: :command, usage: usage}, nil) when is_binary(usage),
    do: "Usage: #{one_line(usage)}"

  defp usage(_entry, _declaration), do: ""

  defp choices(%Declaration{choices: choices}) do
    for %{names: names, required: required} <- choices do
      many = if required, do: "Exactly", else: "At most"
      "#{many} one of #{Enum.map_join(names, ", ", &Schema.name/1)} is given."
    end
  end

  defp choices(nil), do: []

  defp one_line(text), do: text |> String.split() |> Enum.join(" ")

  defp bounded(text) do
    if String.length(text) <= @longest, do: text, else: String.slice(text, 0, @longest - 1) <> "…"
  end

  defp shape(tool, :openai) do
    function = %{
      "name" => tool.name,
      "description" => tool.description,
      "parameters" => tool.schema
    }

    %{"type" => "function", "function" => function}
  end

  defp shape(tool, :anthropic),
    do: %{"name" => tool.name, "description" => tool.description, "input_schema" => tool.schema}

  defp shape(tool, :mcp) do
    definition = %{
      "name" => tool.name,
      "description" => tool.description,
      "inputSchema" => tool.schema,
      "annotations" => %{"readOnlyHint" => tool.reads}
    }

    if tool.title, do: Map.put(definition, "title", tool.title), else: definition
  end

  defp schema do
    [
      shape: {":openai, :anthropic or :mcp", &(&1 in [:openai, :anthropic, :mcp])},
      names: {"a list of globs or nil", &(is_nil(&1) or Options.texts?(&1))},
      limit: {"an integer from 1", &Options.positive?/1}
    ]
  end
end
