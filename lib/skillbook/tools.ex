defmodule Skillbook.Tools do
  @moduledoc """
  Offers commands and skills as tools, for models with native tool calls: definitions in JSON
  Schema, and the execution of calls.

  A tool call runs as a command, with the same checks, limits and results.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> options = [shape: :anthropic, names: ["tasks.get"]]
      iex> [_get_skill, tool] = Skillbook.Tools.definitions(view, options)
      iex> tool["name"]
      "tasks__get"
      iex> tool["input_schema"]["required"]
      ["id"]
      iex> call = %{
      ...>   "type" => "tool_use",
      ...>   "id" => "toolu_1",
      ...>   "name" => "tasks__get",
      ...>   "input" => %{"ib" => "T-1"}
      ...> }
      iex> {%Skillbook.Result{status: :error}, answer} = Skillbook.Tools.call(view, call)
      iex> {answer["tool_use_id"], answer["is_error"]}
      {"toolu_1", true}
  """

  alias Skillbook.Reply.Pipeline
  alias Skillbook.Support.{Closest, Hidden, JSON, Options}

  alias Skillbook.{
    Declaration,
    Entry,
    Flag,
    Native,
    OptionError,
    PolicyError,
    Result,
    ToolCallError,
    View
  }

  alias Skillbook.Reply.ToolCall
  alias Skillbook.Tools.{Name, Schema}

  @get_skill "get_skill"
  @dispatch "agent.dispatch"

  # OpenAI's limits, the lowest of all vendors.
  @max_tools 128
  @max_description_length 1024

  # The minimum similarity for suggesting a tool name that a page has set.
  @min_similarity 0.9

  @type shape :: :openai | :anthropic | :mcp

  @doc """
  Returns the tools of a view: `get_skill`, then the commands and skills that models may see,
  sorted by name.

  The definitions are maps with string keys, for any JSON encoder.

    * Dots in names are written as `__` (`tasks__search`). Names with characters other than
      letters, digits, `.`, `_` and `-` end with a part of their hash.
    * A page may set the name of its tool (`tool: create_skill`).
    * Dashes in the names of flags are written as `_`.
    * Notes are not tools; `get_skill` reads them.
    * For a profile with `writes: :delegate`, the descriptions of commands with side effects say
      how to call `agent.dispatch` for them.
    * The schema of a flag has the declared types only (`Skillbook.Declaration`). Other properties
      are rejected for commands whose flags are checked: those with a handler or `strict: true`.

  ## Options

    * `:shape` - the format: `:openai` (`{"type": "function", "function": {…}}`), `:anthropic`
      (`input_schema`) or `:mcp` (`inputSchema`, with `annotations.readOnlyHint`). Defaults to
      `:openai`
    * `:names` (list of globs) - the names of the entries, as in `Skillbook.Profile`. Defaults to
      all
    * `:limit` (from 1) - the maximum number of tools, including `get_skill`, whose description
      has the number of omitted tools. Defaults to `#{@max_tools}`
  """
  @spec definitions(View.t(), keyword()) :: [map()]
  def definitions(%View{} = view, options \\ []) do
    with {:error, error} <- Options.validate(options, "tool definitions", schema()),
         do: raise(error)

    shape = Keyword.get(options, :shape, :openai)
    limit = Keyword.get(options, :limit, @max_tools)

    entries =
      for kind <- [:command, :skill],
          entry <- View.listed(view, kind: kind),
          entry.name != @get_skill,
          do: entry

    {listed, left_out} =
      entries |> named(options[:names]) |> Enum.sort_by(& &1.name) |> Enum.split(limit - 1)

    dispatch = Enum.find(listed, &(&1.name == @dispatch))

    for tool <- [get_skill(length(left_out)) | Enum.map(listed, &tool(view, &1, dispatch))],
        do: shape(tool, shape)
  end

  @doc false
  # Returns the commands and skills that models may see and globs match, sorted by name.
  @spec listed(View.t(), [String.t()] | nil) :: [Entry.t()]
  def listed(view, globs) do
    entries =
      for entry <- View.listed(view), entry.kind != :note and entry.name != @get_skill, do: entry

    named(entries, globs)
  end

  @doc """
  Runs a tool call and returns its result and the answer for the model, in the format of the call.

  The call is a map, decoded from JSON or with atom keys, in one of these formats:

    * OpenAI: `{"id", "function": {"name", "arguments": JSON text}}`, answered with `{"role":
      "tool", …}`
    * OpenAI's Responses API: `{"type": "function_call", "call_id", "name", "arguments"}`,
      answered with `function_call_output`
    * Anthropic: `{"type": "tool_use", "id", "name", "input"}`, answered with `tool_result`
    * MCP: `{"name", "arguments"}`, the `params` of `tools/call`, answered with
      `{"content": […], "isError"}`

  Invalid calls return a result with the status `:error` and a text that tells the model how to
  correct them. Hidden names are unknown. Takes the options of `Skillbook.run/3` except
  `:unclosed`.
  """
  @spec call(View.t(), map(), keyword()) :: {Result.t(), map()}
  def call(%View{} = view, call, options \\ []) do
    call = ToolCall.read(call)

    result =
      with {:ok, name} <- entry_name(view, call),
           {:ok, arguments} <- arguments(call, name) do
        line = ToolCall.line(name, arguments)
        [result] = Pipeline.commands(view, [line], [{:json, true} | options])
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

  # The example has the required flags, or the first flag.
  defp example(_view, @get_skill), do: ~s({"path": "NAME"})

  defp example(view, name) do
    flags =
      with %Declaration{flags: flags} <- declaration(view, name), do: flags, else: (nil -> [])

    flags = with [] <- Enum.filter(flags, & &1.required), do: Enum.take(flags, 1)
    "{#{Enum.map_join(flags, ", ", &~s("#{Schema.name(&1.name)}": #{example(&1)}))}}"
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

  # Tool names that pages have set are not names of entries, so compare them separately.
  defp unknown(view, tool, suggestions) do
    name = if String.valid?(tool), do: tool, else: inspect(tool)
    chosen = for %{data: %{"tool" => _}} = entry <- listed(view, nil), do: Name.of(view, entry)

    tools =
      for name <- suggestions, {:ok, entry} <- [View.fetch(view, name)], do: Name.of(view, entry)

    near = name |> Closest.to(chosen, @min_similarity) |> List.wrap()

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

  defp tool(view, entry, dispatch) do
    declaration = declaration(view, entry.name)

    %{
      name: Name.of(view, entry),
      title: entry.title && Hidden.visible(entry.title),
      description:
        Hidden.visible(description(entry, declaration, delegated(view, entry, dispatch))),
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
        "Read about commands and skills: without a path the list of all, " <>
          "with a path a domain, the page of a command or the instructions of a skill." <> more,
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

  defp description(entry, declaration, delegated) do
    text =
      [one_line(entry.description), usage(entry, declaration) | choices(declaration)]
      |> Enum.reject(&(&1 == ""))
      |> Enum.join(" ")

    room = @max_description_length - String.length(delegated) - 1

    [if(delegated == "", do: text, else: truncate(text, max(room, 1))), delegated]
    |> Enum.reject(&(&1 == ""))
    |> Enum.join(" ")
    |> truncate(@max_description_length)
  end

  # The same for a tool as `Skillbook.Run.Policy.rule/1` for the prompt.
  defp delegated(%{profile: %{writes: :delegate}} = view, %{name: name} = entry, dispatch)
       when name != @dispatch do
    cond do
      Entry.effect(entry) == :read ->
        ""

      dispatch == nil ->
        "It does not run here. Tell the user what needs to be done."

      true ->
        "Only agents may run it. Call #{Name.of(view, dispatch)} with " <>
          "#{PolicyError.arguments(name)}."
    end
  end

  defp delegated(_view, _entry, _dispatch), do: ""

  # Without declared flags, only the usage line describes the arguments.
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

  defp truncate(text, max) do
    if String.length(text) <= max,
      do: text,
      else: String.slice(text, 0, max - 1) <> "…"
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
