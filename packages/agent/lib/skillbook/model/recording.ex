defmodule Skillbook.Model.Recording do
  @moduledoc ~S"""
  A model that records the answers of another one in a JSON file, and gives them again without it.

      iex> alias Skillbook.Model
      iex> number = System.unique_integer([:positive])
      iex> path = Path.join(System.tmp_dir!(), "recording-#{number}.json")
      iex> model = Model.Function.new(fn _messages, _options -> "Oslo" end)
      iex> messages = [%{role: :user, content: "What is the capital of Norway?"}]
      iex> {:ok, recorder} = Model.Recording.new(path: path, model: model, record: true)
      iex> {:ok, _answer} = Model.chat(recorder, messages, [], fn _text -> :ok end)
      iex> {:ok, recording} = Model.Recording.new(path: path)
      iex> {:ok, answer} = Model.chat(recording, messages, [], fn _text -> :ok end)
      iex> answer.text
      "Oslo"
      iex> File.rm!(path)
      :ok

  ## Requests

  A request gets the answer that was recorded for the same request: the same messages, and the
  same options that decide about an answer, such as `:temperature` and `:tools`. The time limit
  does not count. The following may differ:

    * dates and times in ISO 8601, such as `2026-11-22` and `2026-11-22T10:00:00Z`
    * the ids of rows, such as `T-30739173`, those of stored results, and UUIDs, which are new in
      each run. The recorded answer gets the new ones
    * the ids of tool calls
    * texts that match `:ignore`

  If a request was recorded several times, its answers are given in their order, each once. Any
  other request raises `Skillbook.RecordingError`, which shows the difference to the next recorded
  one; it is not sent anywhere.

  ## The file

  The file has one line for each message, for reviews of its changes. It never has the headers of
  requests, and so no key. These texts are replaced by `[redacted]` in messages and answers:

    * the key of the model, if a message has it
    * texts in the form of common keys and tokens: `sk-…`, `ghp_…`, `AKIA…`, `Bearer …`, JSON
      Web Tokens, private keys in PEM and others
    * texts that match `:redact`

  Of the option `:extra` only the names of its fields are recorded, since its values may be
  secret. The `:opaque` data of answers is not recorded either: it is for the vendor only.
  """

  @behaviour Skillbook.Model

  alias Skillbook.Model.Recording.{JSONFile, Text}
  alias Skillbook.Support.Options
  alias Skillbook.{Model, OptionError, RecordingError}

  @type t :: %__MODULE__{
          path: Path.t(),
          model: Model.t() | nil,
          record: boolean(),
          tools: boolean(),
          calls: [map()],
          used: :atomics.atomics_ref(),
          redact: [String.t() | Regex.t()],
          ignore: [Regex.t()]
        }

  # Milliseconds, at least, until a writer gives up.
  @tries 10_000

  @enforce_keys [:path, :used]
  defstruct [:path, :model, :used, record: false, tools: false] ++
              [calls: [], redact: [], ignore: []]

  @doc """
  Makes a model that gives the answers of a recording, or makes one.

  Returns `{:error, exception}` for wrong options, and a `Skillbook.RecordingError` if the file is
  missing or is not a recording.

  ## Options

    * `:path` - the file. Required
    * `:record` (boolean) - whether to ask the model and write the file. An existing file is
      replaced with the first answer. Defaults to `false`
    * `:model` - the model to record. Required to record
    * `:redact` (list of texts and regular expressions) - more secrets
    * `:ignore` (list of regular expressions) - more parts of messages that may differ
  """
  @spec new(keyword()) :: {:ok, t()} | {:error, OptionError.t() | RecordingError.t()}
  def new(options) do
    options = Options.keywords(options)

    with :ok <- Options.validate(options, "a recording", schema()),
         :ok <- required(options, :path),
         :ok <- if(options[:record], do: required(options, :model), else: :ok),
         {:ok, %{calls: calls, tools: tools}} <- recorded(options) do
      ignore = options[:ignore] || []
      calls = for call <- calls, do: Map.put(call, "key", Text.key(call["request"], ignore))
      fields = [calls: calls, tools: tools, used: :atomics.new(max(length(calls), 2), [])]
      {:ok, struct!(__MODULE__, options ++ fields)}
    end
  end

  defp recorded(options) do
    if options[:record],
      do: {:ok, %{calls: [], tools: Model.tools?(options[:model])}},
      else: JSONFile.read(options[:path])
  end

  @doc "Like `new/1`, but raises the error."
  @spec new!(keyword()) :: t()
  def new!(options) do
    case new(options) do
      {:ok, recording} -> recording
      {:error, error} -> raise error
    end
  end

  @doc """
  Checks that all answers of a recording were given, and returns `:ok`; raises
  `Skillbook.RecordingError`. A recorder has nothing to check.
  """
  @spec verify!(t()) :: :ok
  def verify!(%__MODULE__{calls: calls} = recording) do
    case Enum.find(Enum.with_index(calls, 1), fn {_call, n} ->
           :atomics.get(recording.used, n) == 0
         end) do
      nil ->
        :ok

      {call, number} ->
        raise RecordingError,
          kind: :unused,
          path: recording.path,
          number: number,
          text: Text.request(call["request"])
    end
  end

  # As the recorded model, so that a run has the same protocol.
  @impl true
  def tools?(%__MODULE__{tools: tools}), do: tools

  @impl true
  def check(%__MODULE__{record: true, model: model}, messages), do: Model.check(model, messages)
  def check(_recording, _messages), do: :ok

  @impl true
  def chat(%__MODULE__{record: true} = recording, messages, options, on_text) do
    with {:ok, answer} <- Model.chat(recording.model, messages, options, on_text) do
      secrets = Text.secrets(recording)

      call = %{
        "request" => messages |> Text.plain(options) |> Text.redact(secrets),
        "answer" => answer |> Text.answer() |> Text.redact(secrets)
      }

      header = %{model: Text.model_name(recording.model), tools: recording.tools}

      locked(recording, @tries, fn ->
        first? = :atomics.add_get(recording.used, 1, 1) == 1
        :ok = JSONFile.add!(recording.path, call, header, first?)
      end)

      {:ok, answer}
    end
  end

  def chat(%__MODULE__{} = recording, messages, options, on_text) do
    request = messages |> Text.plain(options) |> Text.redact(Text.secrets(recording))
    key = Text.key(request, recording.ignore)
    same = for {%{"key" => ^key}, n} <- Enum.with_index(recording.calls, 1), do: n

    case Enum.find(same, &(:atomics.compare_exchange(recording.used, &1, 0, 1) == :ok)) do
      nil -> raise mismatch(recording, request, same)
      number -> recording.calls |> Enum.at(number - 1) |> replay(request, options, on_text)
    end
  end

  # Dispatched agents may call the model at the same time. A lock without a process needs no
  # start.
  defp locked(recording, 0, _fun) do
    raise "#{recording.path}: another process writes the recording for too long"
  end

  defp locked(%{used: used} = recording, tries, fun) do
    case :atomics.compare_exchange(used, 2, 0, 1) do
      :ok ->
        try do
          fun.()
        after
          :atomics.put(used, 2, 0)
        end

      _locked ->
        Process.sleep(1)
        locked(recording, tries - 1, fun)
    end
  end

  defp replay(call, request, options, on_text) do
    answer = Text.with_ids(call["answer"], call["request"], request)
    if answer["text"] != "", do: on_text.(answer["text"])
    calls = for call <- answer["tool_calls"] || [], do: Text.call(call)

    if on_call = options[:on_tool_call] do
      for {call, index} <- Enum.with_index(calls), do: on_call.(Map.put(call, :index, index))
    end

    {:ok, Text.from_answer(answer, calls)}
  end

  defp mismatch(recording, _request, [_ | _] = same) do
    %RecordingError{kind: :repeated, path: recording.path, number: length(same)}
  end

  defp mismatch(recording, request, []) do
    next =
      recording.calls
      |> Enum.with_index(1)
      |> Enum.find(fn {_call, n} -> :atomics.get(recording.used, n) == 0 end)

    case next do
      nil ->
        %RecordingError{
          kind: :ended,
          path: recording.path,
          number: length(recording.calls),
          text: Text.request(request)
        }

      {call, number} ->
        %RecordingError{
          kind: :different,
          path: recording.path,
          number: number,
          text: Text.diff(call["request"], request, recording.ignore)
        }
    end
  end

  defp required(options, option) do
    if options[option],
      do: :ok,
      else: {:error, %OptionError{subject: "a recording", option: option, problem: :missing}}
  end

  defp schema do
    regexes? = &(is_list(&1) and Enum.all?(&1, fn regex -> is_struct(regex, Regex) end))

    [
      path: {"a path", &Options.path?/1},
      record: {"a boolean", &is_boolean/1},
      model: {"a model or nil", &(is_nil(&1) or Model.model?(&1))},
      redact:
        {"a list of texts and regular expressions",
         &(is_list(&1) and Enum.all?(&1, fn s -> Options.text?(s) or is_struct(s, Regex) end))},
      ignore: {"a list of regular expressions", regexes?}
    ]
  end
end
