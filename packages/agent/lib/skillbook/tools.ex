defmodule Skillbook.Tools do
  @moduledoc """
  Offers commands and skills as tools, for models with native tool calls: definitions in the
  formats of vendors, and the execution of calls.

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
  alias Skillbook.Support.{Closest, JSON, Options}

  alias Skillbook.{
    Declaration,
    Entry,
    Flag,
    Native,
    OptionError,
    Result,
    Tool,
    ToolCallError,
    Transcript,
    View
  }

  alias Skillbook.Reply.ToolCall
  alias Skillbook.Search.Candidates
  alias Skillbook.Tools.{Name, Shape}

  @get_skill "get_skill"
  @run_command "run_command"
  # The only argument of `run_command`.
  @command "command"
  @run_example ~S({"command": "domain.action --flag VALUE"})
  @dispatch "agent.dispatch"
  @search "skills.search"

  # The budget of `form: :auto`, in tokens.
  @max_tokens 10_000

  # OpenAI's limit, the lowest of all vendors.
  @max_tools 128

  @shapes "one of #{Enum.map_join(Shape.all(), ", ", &inspect/1)}"

  # The minimum similarity for suggesting a tool name that a page has set.
  @min_similarity 0.9

  @typedoc "The vendor whose format the definitions have."
  @type shape ::
          :openai | :openai_strict | :openai_responses | :anthropic | :gemini | :mcp | :llama

  @doc """
  Returns the tools of a view in the format of a vendor: `shape/2` of each tool of `list/2`.

  The definitions are maps with string keys, for any JSON encoder.

  ## Options

    * `:shape` - the format, see `shape/2`. Defaults to `:openai`
    * the options of `list/2`
  """
  @spec definitions(Skillbook.view_or_book(), Skillbook.options()) :: [map()]
  def definitions(view_or_book, options \\ []) do
    {view, options} = View.from(view_or_book, options, "Skillbook.Tools.definitions/2")
    {shape, options} = Keyword.pop(options, :shape, :openai)
    validate([{:shape, shape} | options])
    make(view, options, shape)
  end

  @doc """
  Returns the tools of a view: `get_skill`, then the commands and skills that models may see,
  sorted by name.

    * Dots in names are written as `__` (`tasks__search`). Names with characters other than
      letters, digits, `.`, `_` and `-`, and names that begin with a digit or `-`, end with a part
      of their hash.
    * A page may set the name of its tool (`tool: create_skill`).
    * Dashes in the names of flags are written as `_`.
    * Notes are not tools; `get_skill` reads them.
    * For a profile with `writes: :delegate`, the descriptions of commands with side effects say
      how to call `agent.dispatch` for them.
    * The schema of a flag has the declared types only (`Skillbook.Declaration`). Other properties
      are rejected for commands whose flags are checked: those with a handler or `strict: true`.

  ## Options

    * `:names` (list of globs) - the names of the entries, as in `Skillbook.Profile`. Defaults to
      all
    * `:limit` (from 1) - the maximum number of tools, including `get_skill` and `run_command`.
      The description of `get_skill` has the number of omitted tools. Defaults to `#{@max_tools}`,
      the lowest limit of all vendors
    * `:messages` (list of `t:Skillbook.Model.message/0`) - the conversation. If there are more
      tools than `:limit`, those stay that are proactive for the profile, then those nearest to
      the last messages of the user, as in `Skillbook.prompt/2`, then the first ones by name.
      Defaults to `[]`
    * `:run_command` (boolean) - whether the second tool is `run_command`, which runs any command,
      written as in a `cmd` block: `{"command": "tasks.search --status todo"}`. With it a
      conversation can keep its tools when skills are added. Defaults to `false`
    * `:form` - `:each`, a tool for each command and skill, up to the limit; `:few`, only
      `get_skill`, `run_command`, and `skills.search` if the view has it: the model looks a
      command up and calls it through `run_command`; or `:auto`, which means `:few` if the tools
      of `:each` have more than `:max_tokens`. Defaults to `:each`
    * `:max_tokens` (from 1) - the budget of `form: :auto`, in estimated tokens of all names,
      descriptions and schemas. Defaults to `#{@max_tokens}`

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> tools = Skillbook.Tools.list(view, names: ["memory.*"], run_command: true)
      iex> for tool <- tools, do: tool.name
      ["get_skill", "run_command", "memory__save", "memory__search"]
  """
  @spec list(Skillbook.view_or_book(), Skillbook.options()) :: [Tool.t()]
  def list(view_or_book, options \\ []) do
    {view, options} = View.from(view_or_book, options, "Skillbook.Tools.list/2")
    validate(options)
    make(view, options, nil)
  end

  # Tools, or their definitions in a shape.
  defp make(view, options, shape) do
    names = names(view, options[:names])
    few = fn -> make(view, names, [@search], [run_command: true] ++ options, shape) end

    case options[:form] do
      :few ->
        few.()

      :auto ->
        tools = make(view, names, names, options, nil)
        max = Keyword.get(options, :max_tokens, @max_tokens)

        cond do
          tokens(tools) > max -> few.()
          shape == nil -> tools
          true -> shapes(tools, shape)
        end

      _each ->
        make(view, names, names, options, shape)
    end
  end

  # Those of the names that may become one.
  defp make(view, names, offered, options, shape) do
    max = Keyword.get(options, :limit, @max_tools)
    run_command? = options[:run_command] == true and max > 1
    room = if run_command?, do: max - 2, else: max - 1
    offered = if offered == names, do: names, else: Enum.filter(names, &(&1 in offered))

    stay =
      if length(offered) > room do
        near = Candidates.of_messages(view, options[:messages] || [], room)
        Native.tools_nearest(view.ref, offered, near, room)
      else
        offered
      end

    offered(view, stay, length(names) - length(stay), run_command?, shape)
  end

  defp offered(view, names, left_out, run_command?, shape) do
    delegates? = view.profile.writes == :delegate
    tools = Native.tools_offered(view.ref, names, left_out, run_command?, delegates?, shape)
    if shape, do: tools, else: Enum.map(tools, &struct!(Tool, &1))
  end

  @doc """
  Returns a tool in the format of a vendor, as a map with string keys.

    * `:openai` - OpenAI's Chat Completions: `{"type": "function", "function": {…}}`
    * `:openai_strict` - the same in strict mode: objects are closed, and every property is
      required. Those that are optional may be `null`, which counts as absent. A tool that takes
      any property gets `"strict": false`
    * `:openai_responses` - OpenAI's Responses, strict in the same way
    * `:anthropic` - Anthropic's Messages, with `input_schema`
    * `:gemini` - a function declaration of Gemini: one type for each value, `enum` only for texts
    * `:llama` - as `:openai`, with the part of JSON Schema that llama.cpp can turn into a
      grammar. For all other servers of the OpenAI interface too
    * `:mcp` - the Model Context Protocol, with `inputSchema` and `annotations.readOnlyHint`

  A keyword that a vendor does not accept is left out; a default is then in the description. The
  command checks the arguments in any case.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> [_, tool] = Skillbook.Tools.list(view, names: ["tasks.search"])
      iex> Skillbook.Tools.shape(tool, :openai)["function"]["parameters"]["properties"]["limit"]
      %{
        "type" => "integer",
        "minimum" => 1,
        "maximum" => 100,
        "default" => 20,
        "description" => "How many to show, from 1 to 100 (default: 20)"
      }
      iex> Skillbook.Tools.shape(tool, :openai_responses)["parameters"]["properties"]["limit"]
      %{
        "type" => ["integer", "null"],
        "minimum" => 1,
        "maximum" => 100,
        "description" => "How many to show, from 1 to 100 (default: 20)"
      }
  """
  @spec shape(Tool.t(), shape()) :: map()
  def shape(%Tool{} = tool, shape), do: hd(shapes([tool], shape))

  @doc false
  # Returns tools in the format of a vendor, in one native call.
  @spec shapes([Tool.t()], shape()) :: [map()]
  def shapes(tools, shape) do
    validate(shape: shape)
    Native.tools_shaped(tools, shape)
  end

  @doc false
  # Estimates the tokens of tools in a request.
  @spec tokens([Tool.t()]) :: non_neg_integer()
  def tokens(tools) do
    tools
    |> Enum.map(&Transcript.estimate(&1.name <> &1.description <> JSON.encode(&1.schema)))
    |> Enum.sum()
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
    * Gemini: `{"functionCall": {"id", "name", "args"}}`, or `{"name", "args"}`, answered with
      `{"functionResponse": …}`
    * MCP: `{"name", "arguments"}`, the `params` of `tools/call`, answered with
      `{"content": […], "isError"}`

  Calls of `run_command` run the command in their argument. Invalid calls return a result with
  the status `:error` and a text that tells the model how to correct them. Hidden names are
  unknown. Takes the options of `Skillbook.run/3` except `:unclosed`.
  """
  @spec call(Skillbook.view_or_book(), map(), Skillbook.options()) :: {Result.t(), map()}
  def call(view_or_book, call, options \\ []) do
    {view, options} = View.from(view_or_book, options, "Skillbook.Tools.call/3")
    call = ToolCall.read(call)

    result = result(view, call, options)
    {result, ToolCall.answer(call, result)}
  end

  defp result(view, call, options) do
    with {:ok, line, json?} <- line(view, call) do
      [result] = Pipeline.commands(view, [line], [{:json, json?} | options])
      result
    else
      {:error, error} -> failed(error)
    end
  end

  @doc false
  # The tool of one entry, as `list/2` has it; `nil` if models are not offered it.
  @spec one(Entry.t(), View.t()) :: Tool.t() | nil
  def one(%Entry{hidden_from_model: false, name: name}, view) do
    # Its description may name the other one.
    names = Enum.uniq([name, @dispatch])
    view |> offered(names, 0, false, nil) |> Enum.find(&(&1.entry == name))
  end

  def one(_entry, _view), do: nil

  @doc false
  # Returns the entry that a tool's name means, or `nil` for `get_skill` and `run_command`. With
  # globs, entries that they do not match are unknown.
  @spec find(View.t(), String.t(), [String.t()] | nil) ::
          {:ok, Entry.t() | nil} | {:error, ToolCallError.t()}
  def find(_view, @get_skill, _globs), do: {:ok, nil}
  def find(_view, @run_command, nil), do: {:ok, nil}

  def find(view, tool, globs) do
    with {:ok, name} <- entry_name(view, %ToolCall{shape: :mcp, name: tool}) do
      entry = View.fetch!(view, name)
      if named([entry], globs) == [], do: {:error, unknown(view, tool, [])}, else: {:ok, entry}
    end
  end

  @doc false
  # Returns the command line of a call, and whether its flags are a JSON object.
  @spec line(View.t(), ToolCall.t()) ::
          {:ok, String.t(), boolean()} | {:error, ToolCallError.t()}
  def line(_view, %ToolCall{name: @run_command} = call) do
    case ToolCall.arguments(call) do
      {:ok, %{@command => line}} when is_binary(line) -> {:ok, line, false}
      {:ok, _} -> {:error, command_missing()}
      {:error, error} -> {:error, %{error | example: @run_example}}
    end
  end

  def line(view, call) do
    with {:ok, name} <- entry_name(view, call),
         {:ok, arguments} <- arguments(view, call, name),
         do: {:ok, ToolCall.line(name, arguments), true}
  end

  @doc false
  # Returns a name for a call that every vendor accepts: that of the tool that a model means, or
  # what is left of its own.
  @spec name(View.t(), String.t()) :: String.t()
  def name(_view, name) when name in [@get_skill, @run_command], do: name

  def name(view, name) do
    with true <- name != "" and String.valid?(name),
         {:ok, entry} <- View.fetch(view, Name.resolve(view, name)) do
      Name.of(view, entry)
    else
      _ -> Name.valid(name)
    end
  end

  defp command_missing do
    %ToolCallError{
      kind: :arguments,
      name: @run_command,
      reason: "expected the command as text in \"command\"",
      example: @run_example
    }
  end

  defp failed(error), do: %{Result.error(error) | duration: 0}

  defp arguments(view, call, name) do
    with {:error, error} <- ToolCall.arguments(call),
         do: {:error, %{error | example: example(view, name)}}
  end

  # The example has the required flags, or the first flag.
  defp example(_view, @get_skill), do: ~s({"path": "NAME"})

  defp example(view, name) do
    flags =
      with %Declaration{flags: flags} <- declaration(view, name), do: flags, else: (nil -> [])

    flags = with [] <- Enum.filter(flags, & &1.required), do: Enum.take(flags, 1)

    pair = &~s("#{Flag.in_json(&1)}": #{example(&1)})
    "{#{Enum.map_join(flags, ", ", pair)}}"
  end

  defp example(%Flag{type: :switch}), do: "true"
  defp example(%Flag{type: :integer} = flag), do: to_string(flag.min || flag.max || 10)
  defp example(%Flag{type: :number}), do: "2.5"
  defp example(%Flag{type: :date}), do: ~s("2026-03-01")
  defp example(%Flag{type: :one_of, values: [value | _]}), do: value |> JSON.encode()
  defp example(%Flag{type: :json, structure: "list" <> _}), do: "[]"
  defp example(%Flag{type: :json}), do: "{}"
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
    names = entries |> Enum.map(& &1.name) |> matching(globs) |> MapSet.new()
    Enum.filter(entries, &(&1.name in names))
  end

  defp names(view, globs), do: view.ref |> Native.tools_names(globs) |> matched()

  defp matching(names, globs), do: globs |> Native.globs_filter(names) |> matched()

  defp matched({:ok, names}), do: names

  defp matched({:error, {glob, reason}}) do
    raise %OptionError{
      subject: "globs over names",
      option: :names,
      problem: {:invalid, "globs (#{reason})", glob}
    }
  end

  defp declaration(_view, @get_skill), do: nil

  defp declaration(view, name) do
    case View.flags(view, name) do
      {:ok, declaration} -> declaration
      {:error, _} -> nil
    end
  end

  defp validate(options) do
    with {:error, error} <- Options.validate(options, "tool definitions", options()),
         do: raise(error)
  end

  @doc false
  @spec options() :: keyword()
  def options do
    [
      shape: {@shapes, &(&1 in Shape.all())},
      names: {"a list of globs or nil", &(is_nil(&1) or Options.texts?(&1))},
      limit: {"an integer from 1", &Options.positive?/1},
      messages: {"a list of messages with :role and :content", &Candidates.messages?/1},
      run_command: {"a boolean", &is_boolean/1},
      form: {":each, :few or :auto", &(&1 in [:each, :few, :auto])},
      max_tokens: {"an integer from 1", &Options.positive?/1}
    ]
  end
end
