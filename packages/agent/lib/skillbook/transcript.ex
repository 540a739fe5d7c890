defmodule Skillbook.Transcript do
  @moduledoc ~S"""
  A conversation with a model, which `Skillbook.Agent.run/3` returns and can continue.

  ## Fields

    * `:profile` - the id of its profile. Another profile cannot continue it
    * `:leader` - the id of the profile that it was handed over to and that leads it, or `nil`
    * `:messages` - a list of `Skillbook.Transcript.Message`, the oldest first
    * `:left_out` - the texts of entries in messages that were removed to save room, each as a
      `t:Skillbook.Transcript.Message.activation/0`, the most recent first
    * `:view` - the view whose skills the model knows about, or `nil`. Not part of the JSON
    * `:tools` - the `Skillbook.Tool`s of the conversation, or `nil` if it has none or comes from
      JSON
    * `:run` - the id under which calls of the conversation wait for approvals, or `nil`. A run
      that continues it goes on under this id, so that their results join the conversation as it
      is then
    * `:waiting` - the references of the calls that wait for an approval, or whose results have
      not joined the conversation yet. A run that continues it adds those that were decided
    * `:seen` - of a conversation from JSON, the entries and rights of the view that it was stored
      with, see `t:seen/0`; otherwise `nil`
    * `:prompted` - the names of the entries that its prompt and tools may tell of, a `MapSet`;
      `nil` if they are those of `:view`, and `:lost` if one of them is no longer visible. Not
      part of the JSON

  ## Examples

      iex> alias Skillbook.{Transcript, Transcript.Message}
      iex> message = %Message{kind: :input, content: "Hi", at: ~U[2026-11-21 08:00:00Z]}
      iex> transcript = "default" |> Transcript.new() |> Transcript.add(message)
      iex> transcript |> Transcript.to_json() |> Transcript.from_json() == {:ok, transcript}
      true

      iex> {:error, error} = Skillbook.Transcript.from_json(~S({"version": 4}))
      iex> Exception.message(error)
      "the transcript's version: expected 1, 2 or 3, got: 4"
  """

  alias Skillbook.Model.{Content, Media}
  alias Skillbook.Support.{JSON, TokenCount, UntilError}
  alias Skillbook.Transcript.Message
  alias Skillbook.{Model, Profile, Tool, Tools, TranscriptError, View}

  @type t :: %__MODULE__{
          profile: String.t(),
          leader: String.t() | nil,
          messages: [Message.t()],
          left_out: [Message.activation()],
          view: View.t() | nil,
          tools: [Tool.t()] | nil,
          prompted: MapSet.t(String.t()) | :lost | nil,
          run: String.t() | nil,
          waiting: [String.t()],
          seen: seen() | nil
        }

  @typedoc """
  The rights of a profile, as a hash, and the names of the entries that it saw; `nil` for more
  than 2,000.
  """
  @type seen :: %{rights: String.t(), entries: [String.t()] | nil}

  @enforce_keys [:profile]
  defstruct [:profile, :leader, :view, :tools, :prompted, :run, :seen] ++
              [messages: [], left_out: [], waiting: []]

  @version 3
  # The fields of messages that version 1 did not have.
  @new_fields %{"tool_calls" => [], "opaque" => nil, "call" => nil, "error" => false}
  # An estimated token is at least such a part of a counted one.
  @least 5
  # The result of a call that waits names its approval, and so does the report of its decision.
  @waits ~r/it waits for the approval ([A-Za-z0-9._:-]{1,128}), until /
  @joined ~r/\AThe result of the call that waited for ([A-Za-z0-9._:-]{1,128}):\n/
  # The fields of the whole that earlier releases did not write, and that only a conversation has
  # that was handed over.
  @new %{"run" => nil, "seen" => nil, "leader" => nil, "waiting" => []}
  @kinds [:prompt, :context, :input, :preloaded, :reply, :report, :result, :news, :note, :summary]

  @doc "Returns an empty conversation of the profile with this id."
  @spec new(String.t()) :: t()
  def new(profile) when is_binary(profile), do: %__MODULE__{profile: profile}

  @doc "Appends a message."
  @spec add(t(), Message.t()) :: t()
  def add(%__MODULE__{} = transcript, %Message{} = message),
    do: %{transcript | messages: transcript.messages ++ [message]}

  @doc ~S"""
  Returns the messages for `Skillbook.Model.chat/4`.

  Consecutive messages of one role are merged, since many models require alternating roles.
  Replies with tool calls and their results stay as they are.

      iex> at = ~U[2026-11-21 08:00:00Z]
      iex> transcript = %Skillbook.Transcript{profile: "default", messages: [
      ...>   %Skillbook.Transcript.Message{kind: :news, content: "New: haiku", at: at},
      ...>   %Skillbook.Transcript.Message{kind: :input, content: "Hi", at: at}
      ...> ]}
      iex> Skillbook.Transcript.for_model(transcript)
      [%{role: :user, content: "New: haiku\n\nHi"}]
  """
  @spec for_model(t()) :: [Model.message()]
  def for_model(%__MODULE__{messages: messages}) do
    messages
    |> Enum.chunk_while([], &collect/2, &{:cont, Enum.reverse(&1), []})
    |> Enum.flat_map(&merged/1)
  end

  defp collect(message, [last | _] = group) do
    if Message.role(message) == Message.role(last) and plain?(message) and plain?(last),
      do: {:cont, [message | group]},
      else: {:cont, Enum.reverse(group), [message]}
  end

  defp collect(message, []), do: {:cont, [message]}

  # Only content, which can be joined.
  defp plain?(message),
    do: message.kind != :result and message.tool_calls == [] and message.opaque == nil

  defp merged([]), do: []

  defp merged([%{kind: :result, call: call} = result]),
    do: [Map.merge(call, %{role: :tool, content: result.content, error: result.error})]

  defp merged([first | _] = group) do
    content = group |> Enum.map(& &1.content) |> Content.join()
    message = %{role: Message.role(first), content: content}
    calls = if first.tool_calls == [], do: %{}, else: %{tool_calls: first.tool_calls}
    opaque = if first.opaque == nil, do: %{}, else: %{opaque: first.opaque}
    [message |> Map.merge(calls) |> Map.merge(opaque)]
  end

  @doc """
  Returns the entries whose whole texts are or were in the conversation, each once, the most
  recent first.
  """
  @spec activations(t()) :: [Message.activation()]
  def activations(%__MODULE__{} = transcript) do
    (Enum.reverse(present(transcript)) ++ transcript.left_out)
    |> Enum.reject(&Message.part?/1)
    |> Enum.uniq_by(& &1.name)
  end

  @doc false
  # Those whose texts are still in the conversation, the oldest first.
  @spec present(t()) :: [Message.activation()]
  def present(%__MODULE__{messages: messages}), do: Enum.flat_map(messages, & &1.activations)

  @doc """
  Estimates the tokens of the conversation with its tools, rather too many than too few.
  """
  @spec tokens(t()) :: non_neg_integer()
  def tokens(%__MODULE__{messages: messages, tools: tools}) do
    messages
    |> Enum.map(&message_tokens/1)
    |> Enum.sum()
    |> Kernel.+(Tools.tokens(tools || []))
  end

  @doc false
  # The tokens of the conversation with its tools as the model's server counts them, and how many
  # of those one estimated token is. Without a count, and if the count is too small to be of the
  # whole prompt, as servers with a cache may say, both are estimates.
  @spec context(t()) :: {non_neg_integer(), float()}
  def context(%__MODULE__{messages: messages} = transcript) do
    estimated = tokens(transcript)
    {after_count, counted} = messages |> Enum.reverse() |> Enum.split_while(&(&1.usage == nil))

    with [%{usage: usage} | _] <- counted,
         more = after_count |> Enum.map(&message_tokens/1) |> Enum.sum(),
         count = usage.prompt_tokens + usage.completion_tokens,
         true <- count * @least >= estimated - more do
      {count + more, max(count / max(estimated - more, 1), 0.01)}
    else
      _ -> {estimated, 1.0}
    end
  end

  @doc false
  # For messages of a transcript and those for a model.
  @spec message_tokens(Message.t() | Model.message()) :: non_neg_integer()
  def message_tokens(%{content: content} = message) do
    calls = for call <- Map.get(message, :tool_calls, []), do: call.name <> call.arguments
    opaque = message |> Map.get(:opaque) |> List.wrap() |> Enum.map(&JSON.encode/1)
    Enum.reduce(calls ++ opaque, Content.tokens(content) + 4, &(estimate(&1) + &2))
  end

  @doc false
  # The tokens of a message: those of its text, and four for its role.
  @spec estimate(String.t()) :: non_neg_integer()
  def estimate(text), do: TokenCount.estimate(text) + 4

  # JSON

  @doc """
  Encodes the conversation as JSON, to store it and continue it later.

  It contains everything that the profile has read, and images, files and audio in Base64.
  Protect it accordingly.
  """
  @spec to_json(t()) :: String.t()
  def to_json(%__MODULE__{} = transcript) do
    %{
      version: @version,
      profile: transcript.profile,
      messages: for(m <- transcript.messages, do: %{message_fields(m) | content: content(m)}),
      left_out: transcript.left_out,
      run: transcript.run,
      waiting: transcript.waiting,
      seen: seen(transcript)
    }
    |> Map.merge(if transcript.leader, do: %{leader: transcript.leader}, else: %{})
    |> JSON.encode()
  end

  # The most names that JSON has.
  @max_seen 2_000

  defp seen(%{view: %View{} = view}) do
    names = View.names(view)
    names = if length(names) <= @max_seen, do: Enum.sort(names)
    %{rights: Profile.fingerprint(view.profile), entries: names}
  end

  defp seen(%{seen: seen}), do: seen

  defp content(%{content: text}) when is_binary(text), do: text
  defp content(%{content: parts}), do: Enum.map(parts, &part/1)

  defp part(%Media{type: type, source: {source, value}, name: name}) do
    value = if source == :data, do: Base.encode64(value), else: value
    %{:type => type, :name => name, source => value}
  end

  defp part(text), do: text

  @doc false
  # A message as in the JSON, for logs, which have no bytes of images, files and audio.
  @spec message_fields(Message.t()) :: map()
  def message_fields(%{content: content, at: at} = message),
    do: %{Map.from_struct(message) | content: Content.text(content), at: DateTime.to_iso8601(at)}

  @doc """
  Decodes the JSON of `to_json/1`.

  A missing, unknown or invalid field returns a `Skillbook.TranscriptError` with its place. JSON
  of the versions 1, which had no tool calls, and 2, which had no run, is read too.
  """
  @spec from_json(String.t()) :: {:ok, t()} | {:error, TranscriptError.t()}
  def from_json(json) when is_binary(json), do: from_json(json, [])

  @doc false
  # The same for a conversation whose last reply may have calls without results.
  @spec open_from_json(String.t()) :: {:ok, t()} | {:error, TranscriptError.t()}
  def open_from_json(json) when is_binary(json), do: from_json(json, :open)

  defp from_json(json, calls) do
    with {:ok, value} <- decode(json),
         {:ok, version} <- version(value),
         {:ok, fields} <-
           object(Map.merge(@new, value), "",
             version: &whole/2,
             profile: &text/2,
             messages: &messages(&1, &2, version, calls),
             left_out: &activations/2,
             run: &text_or_nil/2,
             seen: &seen/2,
             leader: &text_or_nil/2,
             waiting: fn value, path -> list(value, path, &text/2) end
           ) do
      fields = if is_map_key(value, "waiting"), do: fields, else: derive_waiting(fields)
      {:ok, struct!(__MODULE__, Map.delete(fields, :version))}
    end
  end

  # Of an earlier release: the calls that its reports say to wait, without those whose results
  # have joined the conversation.
  defp derive_waiting(%{messages: messages} = fields) do
    texts =
      for %{kind: kind} = m <- messages, kind in [:report, :result], do: Content.text(m.content)

    waiting = for text <- texts, line <- pending_lines(text), ref <- refs(@waits, line), do: ref
    joined = Enum.flat_map(texts, &refs(@joined, &1))
    %{fields | waiting: Enum.uniq(waiting) -- joined}
  end

  # Lines of a result are indented, but for those of a tool call, of which it is the only one.
  defp pending_lines("pending\n" <> text), do: String.split(text, "\n")

  defp pending_lines(text) do
    {lines, _pending?} =
      text
      |> String.split("\n")
      |> Enum.flat_map_reduce(false, fn
        "  " <> line, true -> {[line], true}
        "", pending? -> {[], pending?}
        line, _before -> {[], line == "pending"}
      end)

    lines
  end

  defp refs(pattern, text), do: for([_all, ref] <- Regex.scan(pattern, text), do: ref)

  defp decode(json) do
    with {:error, error} <- JSON.decode(json), do: wrong("", "JSON", Exception.message(error))
  end

  # Checked first, since another version has other fields.
  defp version(%{"version" => version}) when version in 1..@version, do: {:ok, version}
  defp version(%{"version" => other}), do: wrong("version", "1, 2 or #{@version}", show(other))
  defp version(_), do: wrong("", "an object with the field `version`", "none")

  defp messages(value, path, version, calls) do
    with {:ok, messages} <- list(value, path, &message(upgrade(&1, version), &2)),
         nil <- messages |> Enum.drop(1) |> Enum.find_index(&(&1.kind == :prompt)),
         :ok <- answered(closed(messages, calls), [], path, 0) do
      {:ok, messages}
    else
      {:error, _} = error ->
        error

      place ->
        wrong("#{path}[#{place + 1}].kind", "a prompt only as the first message", show("prompt"))
    end
  end

  defp upgrade(%{} = message, 1), do: Map.merge(@new_fields, message)
  defp upgrade(message, _version), do: message

  defp closed(messages, []), do: messages

  defp closed(messages, :open) do
    case List.last(messages) do
      %{kind: :reply} -> Enum.drop(messages, -1)
      _other -> messages
    end
  end

  # No model accepts a call without its result, or a result without its call.
  defp answered([%{kind: :result, call: call} | rest], [call | calls], path, place),
    do: answered(rest, calls, path, place + 1)

  defp answered([%{kind: :result, call: call} | _], _calls, path, place),
    do: wrong("#{path}[#{place}].call", "the next call of the reply before it", show(call))

  defp answered([message | rest], [], path, place),
    do:
      answered(
        rest,
        for(call <- message.tool_calls, do: Map.take(call, [:id, :name])),
        path,
        place + 1
      )

  defp answered(messages, [call | _], path, place) do
    got = with [message | _] <- messages, do: show(to_string(message.kind)), else: ([] -> "none")
    wrong("#{path}[#{place}].kind", "the result of the call #{show(call.id)}", got)
  end

  defp answered([], [], _path, _place), do: :ok

  defp message(value, path) do
    checks = [
      kind: &kind/2,
      content: &content/2,
      at: &time/2,
      activations: &activations/2,
      usage: &usage/2,
      tool_calls: &tool_calls/2,
      opaque: &opaque/2,
      call: &call/2,
      error: &boolean/2
    ]

    with {:ok, fields} <- object(value, path, checks),
         :ok <- of_kind(fields, path),
         do: {:ok, struct!(Message, fields)}
  end

  defp of_kind(%{kind: kind, content: [_ | _]}, path)
       when kind not in [:input, :result, :report],
       do: wrong("#{path}.content", "text, for it is no input, result or report", "a list")

  defp of_kind(%{kind: :result, call: nil}, path),
    do: wrong("#{path}.call", "the call of the result", "nil")

  defp of_kind(%{kind: kind, call: %{} = call}, path) when kind != :result,
    do: wrong("#{path}.call", "nil, for it is no result", show(call))

  defp of_kind(%{kind: kind, tool_calls: [_ | _]}, path) when kind != :reply,
    do: wrong("#{path}.tool_calls", "none, for it is no reply", "some")

  defp of_kind(_fields, _path), do: :ok

  defp content([_ | _] = parts, path), do: list(parts, path, &part/2)
  defp content(value, path), do: text(value, path)

  defp part(%{} = part, path) do
    source = if is_map_key(part, "data"), do: [data: &base64/2], else: [url: &text/2]

    with {:ok, fields} <-
           object(part, path, [type: &text/2, name: &text_or_nil/2] ++ source),
         {:error, %{option: option, problem: {:invalid, expected, got}}} <- Media.new(fields),
         do: wrong(join(path, option), expected, show(got))
  end

  defp part(value, path), do: text(value, path)

  defp base64(value, path) do
    with true <- is_binary(value), {:ok, bytes} <- Base.decode64(value) do
      {:ok, bytes}
    else
      _ -> wrong(path, "bytes in Base64", show(value))
    end
  end

  defp tool_calls(value, path), do: list(value, path, &tool_call/2)

  defp tool_call(value, path),
    do: object(value, path, id: &text/2, name: &text/2, arguments: &text/2)

  # Its values are the vendor's.
  defp opaque(value, _path) when is_map(value) or is_nil(value), do: {:ok, value}
  defp opaque(value, path), do: wrong(path, "an object or null", show(value))

  defp call(nil, _path), do: {:ok, nil}
  defp call(value, path), do: object(value, path, id: &text/2, name: &text/2)

  defp boolean(value, _path) when is_boolean(value), do: {:ok, value}
  defp boolean(value, path), do: wrong(path, "true or false", show(value))

  defp activations(value, path), do: list(value, path, &activation/2)

  defp activation(value, path),
    do: object(value, path, name: &text/2, hash: &text/2, command: &text/2, answer: &text/2)

  defp usage(nil, _path), do: {:ok, nil}

  # Earlier releases did not write the tokens of caches.
  defp usage(%{} = value, path) do
    %{"cached_tokens" => 0, "cache_write_tokens" => 0}
    |> Map.merge(value)
    |> object(path,
      prompt_tokens: &whole/2,
      completion_tokens: &whole/2,
      cached_tokens: &whole/2,
      cache_write_tokens: &whole/2
    )
  end

  defp usage(value, path), do: wrong(path, "an object", show(value))

  defp kind(value, path) do
    case Enum.find(@kinds, &(to_string(&1) == value)) do
      nil -> wrong(path, "one of #{Enum.join(@kinds, ", ")}", show(value))
      kind -> {:ok, kind}
    end
  end

  defp text(value, _path) when is_binary(value), do: {:ok, value}
  defp text(value, path), do: wrong(path, "text", show(value))

  defp text_or_nil(nil, _path), do: {:ok, nil}
  defp text_or_nil(value, path), do: text(value, path)

  defp seen(nil, _path), do: {:ok, nil}
  defp seen(value, path), do: object(value, path, rights: &text/2, entries: &names/2)

  defp names(nil, _path), do: {:ok, nil}
  defp names(value, path), do: list(value, path, &text/2)

  defp whole(value, _path) when is_integer(value) and value >= 0, do: {:ok, value}
  defp whole(value, path), do: wrong(path, "a whole number from 0", show(value))

  defp time(value, path) do
    with true <- is_binary(value),
         {:ok, time, 0} <- DateTime.from_iso8601(value) do
      {:ok, time}
    else
      _ -> wrong(path, "a time such as \"2026-11-21T08:00:00Z\"", show(value))
    end
  end

  defp list(values, path, check) when is_list(values) do
    values
    |> Enum.with_index()
    |> UntilError.map(fn {value, place} -> check.(value, "#{path}[#{place}]") end)
  end

  defp list(value, path, _check), do: wrong(path, "a list", show(value))

  # Checks the fields in order; any others are an error.
  defp object(%{} = object, path, checks) do
    result =
      UntilError.reduce(checks, {%{}, object}, fn {key, check}, {fields, rest} ->
        with {:ok, value, rest} <- pop(rest, key, path),
             {:ok, value} <- check.(value, join(path, key)),
             do: {:ok, {Map.put(fields, key, value), rest}}
      end)

    with {:ok, {fields, rest}} <- result do
      case Map.keys(rest) do
        [] ->
          {:ok, fields}

        [key | _] ->
          wrong(path, "the fields #{Enum.join(Keyword.keys(checks), ", ")}", "also #{show(key)}")
      end
    end
  end

  defp object(value, path, _checks), do: wrong(path, "an object", show(value))

  defp pop(object, key, path) do
    case Map.pop(object, to_string(key), :missing) do
      {:missing, _} -> wrong(path, "the field `#{key}`", "none")
      {value, rest} -> {:ok, value, rest}
    end
  end

  defp join("", key), do: to_string(key)
  defp join(path, key), do: "#{path}.#{key}"

  defp show(value), do: inspect(value, limit: 5, printable_limit: 60)

  defp wrong("", expected, got), do: wrong(nil, expected, got)

  defp wrong(path, expected, got),
    do: {:error, %TranscriptError{path: path, expected: expected, got: got}}

  # It holds a whole conversation and a view, which nobody wants to see in a log or a shell.
  defimpl Inspect do
    def inspect(transcript, _options) do
      kinds = transcript.messages |> Enum.frequencies_by(& &1.kind) |> Enum.sort()
      counts = Enum.map_join(kinds, ", ", fn {kind, count} -> "#{kind}: #{count}" end)
      "#Skillbook.Transcript<#{inspect(transcript.profile)}, [#{counts}]>"
    end
  end
end
