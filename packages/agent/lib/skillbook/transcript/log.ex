defmodule Skillbook.Transcript.Log do
  @moduledoc """
  Writes the messages of conversations to a file, each as a line of JSON.

      children = [
        {Skillbook.Transcript.Log, name: MyApp.Conversations, path: "log/conversations.jsonl"}
      ]

  `on_event/2` returns the receiver for `Skillbook.Agent.run/3`, and `read/1` the conversations:

      options = [conversation: "c-17", profile: "ann"]
      log = Skillbook.Transcript.Log.on_event(MyApp.Conversations, options)
      Skillbook.Agent.run(MyApp.Skills, "What is due today?", profile: "ann", on_event: log)

  A line is written as soon as its message is added, so it is there even if the run fails. It has
  the fields `version`, `conversation`, `profile`, `agent` (the id of a dispatched agent, or
  `null`) and `message`, a message of `Skillbook.Transcript.to_json/1`. Images, files and audio
  are only named in it.

  ## Secrets

  The file has everything that the user, the model and the commands said, values of flags
  included, and also what later became hidden or was compacted. It is made for its owner alone
  (mode 0600). `:redact` changes messages before they are written.

  ## Files

  One process writes to a file, a whole line at a time, so use one log for each file. A file that
  would get larger than `:max_bytes` is renamed to `PATH.1`, an older one to `PATH.2`, and so on.

  If a line cannot be written, a warning is logged and the run goes on.

  ## Options

    * `:path` (path) - the file. Its folder must exist. Required
    * `:name` - the name of the process, as of `GenServer.start_link/3`. Required for `on_event/2`
      with a name
    * `:max_bytes` (bytes) - the largest size of a file, unless one line is larger. Defaults to
      `10_000_000`
    * `:keep` (number) - how many renamed files are kept, from 0 to 1,000. Defaults to `5`
    * `:redact` (function of one argument or `{module, function}`) - gets each
      `Skillbook.Transcript.Message`, and returns the one to write, or `nil` for none. Defaults to
      `nil`, no change

  ## Examples

      iex> alias Skillbook.{Agent, Model, Transcript}
      iex> path = Path.join(System.tmp_dir!(), "skillbook_log.jsonl")
      iex> _ = File.rm(path)
      iex> {:ok, log} = Transcript.Log.start_link(path: path)
      iex> {:ok, _pid} = Skillbook.start_link(name: :log_example, builtins: false)
      iex> model = Model.Function.new(fn _messages, _options -> "Hello!" end)
      iex> on_event = Transcript.Log.on_event(log, conversation: "c-1")
      iex> {:ok, _result} = Agent.run(:log_example, "Hi", model: model, on_event: on_event)
      iex> {:ok, [conversation]} = Transcript.Log.read(path)
      iex> {conversation.id, Enum.map(conversation.transcript.messages, & &1.content)}
      {"c-1", ["Hi", "Hello!"]}
  """

  use GenServer

  alias Skillbook.Support.{Arguments, JSON, Number, Options, PrivateFile, UntilError}
  alias Skillbook.Transcript.Message
  alias Skillbook.{OptionError, Transcript, TranscriptError}

  require Logger

  @typedoc "A conversation: its id, the id of its dispatched agent or `nil`, and its messages."
  @type conversation :: %{id: String.t(), agent: String.t() | nil, transcript: Transcript.t()}

  @version 2
  @defaults %{name: nil, max_bytes: 10_000_000, keep: 5, redact: nil}

  @doc """
  Starts the process of a log with the options above.

      iex> {:error, error} = Skillbook.Transcript.Log.start_link(file: "log.jsonl")
      iex> error.option
      :file
  """
  @spec start_link(Skillbook.options()) :: GenServer.on_start() | {:error, OptionError.t()}
  def start_link(options) do
    options = Options.keywords(options)

    with :ok <- Options.validate(options, "a log", schema()),
         {:ok, _path} <- required(options) do
      settings = Map.merge(@defaults, Map.new(options))
      name = if settings.name, do: [name: settings.name], else: []
      GenServer.start_link(__MODULE__, settings, name)
    end
  end

  @doc false
  def child_spec(options) do
    id = if Options.options?(options), do: Options.keywords(options)[:name]
    %{id: {__MODULE__, id}, start: {__MODULE__, :start_link, [options]}}
  end

  defp required(options) do
    with :error <- Keyword.fetch(options, :path),
         do: {:error, %OptionError{subject: "a log", option: :path, problem: :missing}}
  end

  defp schema do
    [
      path: {"a path", &Options.path?/1},
      name: {Options.process_name(), &Options.process_name?/1},
      max_bytes: {"a whole number from 1", &Options.positive?/1},
      keep: {"a whole number from 0 to 1,000", &(&1 in 0..1000)},
      redact:
        {"a function of one argument, {module, function} or nil",
         &(is_nil(&1) or is_function(&1, 1) or
             match?({module, function} when is_atom(module) and is_atom(function), &1))}
    ]
  end

  @doc """
  Returns an `:on_event` receiver for `Skillbook.Agent.run/3`, a function of one argument.

  It writes the messages of the run and of the agents that it dispatches. To handle events too,
  call it from a function of your own.

  ## Options

    * `:conversation` (text) - the id of the conversation, the same for all its runs. Required
    * `:profile` (text) - the id of the profile. Defaults to `"default"`
  """
  @spec on_event(GenServer.server(), Skillbook.options()) :: (term() -> :ok)
  def on_event(log, options) do
    Arguments.check!("Skillbook.Transcript.Log.on_event/2", options: {:options, options})
    options = Options.keywords(options)
    text = {"text", &(is_binary(&1) and String.valid?(&1))}
    subject = "a conversation of a log"

    with {:error, error} <-
           Options.validate(options, subject, conversation: text, profile: text),
         do: raise(error)

    id =
      options[:conversation] ||
        raise OptionError, subject: subject, option: :conversation, problem: :missing

    head = %{version: @version, conversation: id, profile: options[:profile] || "default"}
    &receive_event(log, head, nil, &1)
  end

  defp receive_event(log, head, _agent, {:agent, id, event}),
    do: receive_event(log, head, id, event)

  defp receive_event(log, head, agent, {:message, message}),
    do: write(log, Map.put(head, :agent, agent), message)

  defp receive_event(_log, _head, _agent, _event), do: :ok

  defp write(log, head, message) do
    GenServer.call(log, {:write, head, message})
  catch
    # The log is no part of the run.
    :exit, {reason, _call} -> warn("the log #{inspect(log)} does not answer: #{inspect(reason)}")
  end

  defp warn(text) do
    Logger.warning("a message of a conversation was not logged: #{text}")
    :ok
  end

  # The process

  @impl true
  def init(settings) do
    end_last_line(settings.path)
    {:ok, settings}
  end

  # A line is incomplete if the machine stopped while it was written.
  defp end_last_line(path) do
    with {:ok, %{size: size}} when size > 0 <- File.stat(path),
         {:ok, file} <- :file.open(path, [:read, :raw, :binary]) do
      last = :file.pread(file, size - 1, 1)
      :file.close(file)
      if last not in [{:ok, "\n"}, :eof], do: File.write(path, "\n", [:append])
    end

    :ok
  end

  @impl true
  def handle_call({:write, head, message}, _from, settings) do
    with %Message{} = message <- redact(settings.redact, message),
         line = JSON.encode(Map.put(head, :message, Transcript.message_fields(message))) <> "\n",
         :ok <- make_room(settings, byte_size(line)),
         {:error, reason} <- append(settings.path, line) do
      warn("#{settings.path}: #{:file.format_error(reason)}")
    else
      {:error, reason} when is_atom(reason) ->
        warn("#{settings.path}: #{:file.format_error(reason)}")

      {:error, reason} ->
        warn(reason)

      _ ->
        :ok
    end

    {:reply, :ok, settings}
  end

  defp redact(nil, message), do: message

  # The error may have the text that must not be written.
  defp redact(redact, message) do
    case call(redact, message) do
      %Message{} = redacted -> redacted
      nil -> nil
      _other -> {:error, "expected a message or nil of :redact, got another value"}
    end
  rescue
    error -> {:error, ":redact raised #{inspect(error.__struct__)}"}
  catch
    kind, _reason -> {:error, ":redact ended with #{kind}"}
  end

  defp call({module, function}, message), do: apply(module, function, [message])
  defp call(function, message), do: function.(message)

  defp append(path, line) do
    new? = not File.exists?(path)

    with :ok <- if(new?, do: PrivateFile.touch(path), else: :ok),
         do: File.write(path, line, [:append])
  end

  defp make_room(%{path: path, max_bytes: max} = settings, bytes) do
    case File.stat(path) do
      {:ok, %{size: size}} when size > 0 and size + bytes > max -> rotate(path, settings.keep)
      _ -> :ok
    end
  end

  defp rotate(path, 0), do: File.rm(path)

  defp rotate(path, keep) do
    for number <- (keep - 1)..1//-1, do: File.rename("#{path}.#{number}", "#{path}.#{number + 1}")
    File.rename(path, "#{path}.1")
  end

  # Reading

  @doc """
  Reads the conversations of a log and of its renamed files, in the order of their beginnings.

  A line that is no JSON, as when the machine stopped while it was written, is left out. Any other
  line that is no message is a `Skillbook.TranscriptError`, and so is a file that cannot be read.
  Messages whose beginning is missing, such as a result without its call, are left out.
  """
  @spec read(Path.t()) :: {:ok, [conversation()]} | {:error, TranscriptError.t()}
  def read(path) do
    with {:ok, lines} <- path |> files() |> UntilError.map(&lines/1),
         {:ok, lines} <- lines |> Enum.concat() |> UntilError.map(&line/1) do
      lines
      |> Enum.reject(&is_nil/1)
      |> Enum.group_by(fn {key, _place, _message} -> key end)
      |> Enum.sort_by(fn {_key, [{_, place, _} | _]} -> place end)
      |> UntilError.map(&conversation/1)
    end
  end

  # The oldest first.
  defp files(path) do
    renamed =
      for file <- Path.wildcard(escape(path) <> ".*"),
          [_, number] <- [Regex.run(~r/\.([1-9][0-9]{0,3})\z/, file)],
          do: {Number.integer!(number), file}

    renamed = renamed |> Enum.sort(:desc) |> Enum.map(&elem(&1, 1))
    Enum.with_index(renamed ++ [path])
  end

  defp escape(path), do: String.replace(path, ~r/[\[\]{}*?,\\]/, "\\\\\\0")

  defp lines({file, number}) do
    case File.read(file) do
      {:ok, text} ->
        lines = text |> String.split("\n") |> Enum.with_index(1)
        {:ok, for({line, place} <- lines, line != "", do: {file, number, place, line})}

      {:error, reason} ->
        wrong(file, "a file that can be read", to_string(:file.format_error(reason)))
    end
  end

  defp line({file, number, place, text}) do
    case JSON.decode(text) do
      {:ok,
       %{
         "version" => @version,
         "conversation" => <<_::binary>> = id,
         "profile" => <<_::binary>> = profile,
         "agent" => agent,
         "message" => %{} = message
       }}
      when is_binary(agent) or is_nil(agent) ->
        {:ok, {{id, agent, profile}, {number, place, file}, message}}

      {:ok, _other} ->
        wrong("#{file}:#{place}", "a message of a log of version #{@version}", "another value")

      {:error, _} ->
        {:ok, nil}
    end
  end

  defp conversation({{id, agent, profile}, lines}) do
    messages = Enum.map(lines, fn {_key, _place, message} -> message end)

    with {:ok, transcript} <- transcript(profile, complete(messages)) do
      {:ok, %{id: id, agent: agent, transcript: transcript}}
    else
      {:error, error} ->
        [{_key, {_, place, file}, _} | _] = lines
        {:error, %{error | path: "#{file}:#{place}: #{error.path}"}}
    end
  end

  # A prompt replaces the one before. Calls need all their results.
  defp complete(messages) do
    {prompts, messages} = Enum.split_with(messages, &(&1["kind"] == "prompt"))
    Enum.take(prompts, -1) ++ answered(messages, [])
  end

  defp answered([], done), do: Enum.reverse(done)
  defp answered([%{"kind" => "result"} | rest], done), do: answered(rest, done)

  defp answered([%{"tool_calls" => [_ | _] = calls} = reply | rest], done) do
    {results, others} = Enum.split_while(rest, &(&1["kind"] == "result"))

    if length(results) == length(calls),
      do: answered(others, Enum.reverse(results) ++ [reply | done]),
      else: answered(others, done)
  end

  defp answered([message | rest], done), do: answered(rest, [message | done])

  defp transcript(profile, messages) do
    %{version: @version, profile: profile, messages: messages, left_out: []}
    |> JSON.encode()
    |> Transcript.from_json()
  end

  defp wrong(path, expected, got),
    do: {:error, %TranscriptError{path: path, expected: expected, got: got}}
end
