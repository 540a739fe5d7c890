defmodule Skillbook.Test.Evaluator do
  @moduledoc false
  # Runs evaluations: each run in a book of its own, which stops after it.

  alias Skillbook.Model.Recording
  alias Skillbook.Reply.Pipeline
  alias Skillbook.Support.{ReadFile, UntilError}
  alias Skillbook.Test.{Before, Checks, Evaluation, Judge, Run, Stub}
  alias Skillbook.{Agent, AgentError, Book, Part, Profile, RecordingError, Store, View}

  # Bytes of a file that is added to a request
  @max_file 256 * 1024

  @typedoc "One run to do."
  @type job :: {Evaluation.t(), :with | :without | :before, pos_integer()}

  @doc """
  Runs evaluations in all variants, and calls `progress` with each finished run.

  The options are those of `Skillbook.Test.evaluate/2`, checked.
  """
  @spec run([Evaluation.t()], keyword(), (Run.t(), non_neg_integer() -> term())) :: [Run.t()]
  def run(evaluations, options, progress) do
    jobs =
      for evaluation <- evaluations,
          variant <- options[:variants],
          number <- 1..(options[:repeat] || evaluation.repeat),
          do: {evaluation, variant, number}

    total = length(jobs)

    jobs
    |> Task.async_stream(&one(&1, options),
      max_concurrency: options[:max_concurrency],
      timeout: :infinity,
      # The agent's own limits end a run. A task that is killed is none of them.
      on_timeout: :exit
    )
    |> Enum.map(fn {:ok, run} ->
      progress.(run, total)
      run
    end)
  end

  defp one({evaluation, variant, number}, options) do
    run = %Run{evaluation: evaluation, variant: variant, number: number, status: :error}
    began = System.monotonic_time(:millisecond)

    run =
      with {:ok, model} <- model(:model, run, options),
           {:ok, judge} <- judge(run, options) do
        run = %{run | recorded: match?(%Recording{record: false}, model)}
        in_book(run, options, &converse(run, &1, model, judge, options))
      else
        {:error, %RecordingError{kind: :missing} = error} ->
          %{run | status: :not_run, error: error}

        {:error, error} ->
          %{run | error: error}
      end

    %{run | duration: System.monotonic_time(:millisecond) - began}
  rescue
    # One run that fails must not end the others.
    error ->
      %Run{evaluation: evaluation, variant: variant, number: number, status: :error, error: error}
  end

  # The model, a recorder around it, or a recording.

  defp model(which, run, options) do
    path = Evaluation.recording(run.evaluation, run.variant, run.number, which == :judge)

    case options[which] do
      nil -> Recording.new(path: path, redact: options[:redact])
      model -> if options[:record], do: recorder(path, model, options), else: {:ok, model}
    end
  end

  defp recorder(path, model, options),
    do: Recording.new(path: path, model: model, record: true, redact: options[:redact])

  defp judge(%{evaluation: %{rubric: []}}, _options), do: {:ok, nil}

  # The same model judges if no other is given.
  defp judge(run, options),
    do: model(:judge, run, Keyword.put_new(options, :judge, options[:model]))

  # The book

  # The caller is linked with this process, so its end is a message here: the run and its book end
  # too, and copies of files are deleted.
  defp in_book(run, options, fun) do
    trapping = Process.flag(:trap_exit, true)

    try do
      with {:ok, book_options, clean} <- book_options(run, options) do
        try do
          until_caller_ends(fn -> start(1, book_options, run, options, fun) end)
        after
          clean.()
        end
      else
        {:none, text} -> %{run | status: :not_run, error: %RuntimeError{message: text}}
        {:error, error} -> %{run | error: error}
      end
    after
      Process.flag(:trap_exit, trapping)
    end
  end

  defp until_caller_ends(fun) do
    %Task{pid: pid, ref: ref} =
      task =
      Task.async(fn ->
        # A book that crashes is an error of its run.
        Process.flag(:trap_exit, true)
        fun.()
      end)

    receive do
      {^ref, run} ->
        Process.demonitor(ref, [:flush])
        run

      {:DOWN, ^ref, :process, _pid, reason} ->
        exit(reason)

      {:EXIT, other, _reason} when is_pid(other) and other != pid ->
        Task.shutdown(task, :brutal_kill)
        exit(:shutdown)
    end
  end

  # The first free name, so that names are as many as books run at a time: names are never freed.
  defp start(number, book_options, run, options, fun) do
    name = :"skillbook_evaluation_#{number}"

    if Process.whereis(name),
      do: start(number + 1, book_options, run, options, fun),
      else: start_named(name, number, book_options, run, options, fun)
  end

  defp start_named(name, number, book_options, run, options, fun) do
    evaluation = run.evaluation
    test = self()

    hooks = %{
      stubs: Map.merge(options[:stubs], evaluation.stubs),
      handler: Stub,
      observe: fn routed, _context, _answer -> send(test, {__MODULE__, name, call(routed)}) end,
      clock: fn -> evaluation.now || DateTime.utc_now() end
    }

    case Book.start_link([name: name] ++ book_options, hooks) do
      {:ok, pid} ->
        try do
          # A search finds all notes.
          Part.all(Book.fetch!(name).parts, :sync, [name])
          fun.(name)
        rescue
          error -> %{run | error: error}
        catch
          :exit, reason -> %{run | error: %RuntimeError{message: Exception.format_exit(reason)}}
        after
          stop(pid)
          _ = calls(name)
        end

      # Another evaluation was faster.
      {:error, {:already_started, _pid}} ->
        start(number + 1, book_options, run, options, fun)

      {:error, error} when is_exception(error) ->
        %{run | error: error}

      {:error, reason} ->
        %{run | error: %RuntimeError{message: "the book cannot start: #{inspect(reason)}"}}
    end
  end

  defp stop(pid) do
    Supervisor.stop(pid)
  catch
    :exit, _ -> :ok
  end

  defp call(routed),
    do: %{name: routed.name, flags: routed.command.flags, args: routed.command.args}

  defp calls(name) do
    receive do
      {__MODULE__, ^name, call} -> [call | calls(name)]
    after
      0 -> []
    end
  end

  # Nothing of an evaluation may reach the database of the application.
  defp book_options(run, options) do
    ask = run.evaluation.ask

    book =
      Keyword.merge(options[:book],
        store: ":memory:",
        watch: false,
        scheduler: false,
        ask: fn _request -> ask end
      )

    book = Keyword.drop(book, [:name, :schedules])

    if run.variant == :before and stored(run, options) == nil,
      do: Before.sources(run.evaluation, book, options[:before]),
      else: {:ok, book, fn -> :ok end}
  end

  # A copy of a stored skill

  defp stored(%{evaluation: %{skill: name}}, options) when is_binary(name) do
    with %View{} = view <- options[:stored],
         {:ok, stored} <- Store.fetch(view, name),
         do: stored,
         else: (_ -> nil)
  end

  defp stored(_run, _options), do: nil

  defp copy_stored(run, book, options) do
    case stored(run, options) do
      nil -> :ok
      stored -> with {:ok, stored} <- version(run, stored, options), do: create(stored, book)
    end
  end

  defp version(%{variant: :before}, stored, options) do
    with {:ok, versions} <- Store.history(options[:stored], stored.name),
         %{version: number} <- Enum.find(versions, &(&1.entry.hash != stored.hash)),
         {:ok, version} <- Store.version(options[:stored], stored.name, number) do
      {:ok, version.entry}
    else
      nil -> {:none, "there is no version of #{stored.name} before with another text"}
      error -> error
    end
  end

  defp version(_run, stored, _options), do: {:ok, stored}

  @fields ~w(name kind title description content tags labels include_in_prompt proactive_for
             excluded_for attachments)a

  # As its author wrote it, since an imported skill is less trusted.
  defp create(stored, book) do
    profile = %{Profile.unrestricted() | id: stored.author}
    fields = Map.take(stored, @fields)

    with {:ok, _} <- Store.create(View.of(book, profile), fields, by: stored.source), do: :ok
  end

  # The conversation

  defp converse(run, book, model, judge, options) do
    evaluation = run.evaluation

    with :ok <- copy_stored(run, book, options),
         {:ok, profile} <- profile(run, book, options),
         view = View.of(book, profile),
         :ok <- setup(evaluation, book, profile),
         _ = calls(book),
         {:ok, requests} <- requests(evaluation),
         {:ok, run, result} <- ask(requests, run, book, profile, model) do
      run = %{run | calls: calls(book)}
      messages = result.transcript.messages
      read = for message <- messages, %{name: name} <- message.activations, uniq: true, do: name
      checks = Checks.run(evaluation, view, result.status, run.calls, read, run.text)
      run |> judged(judge, checks, messages) |> replayed(model, judge)
    else
      {:none, text} -> %{run | status: :not_run, error: %RuntimeError{message: text}}
      {:error, %Run{} = run} -> run
      {:error, error} -> %{run | error: error}
    end
  end

  defp profile(run, book, options) do
    profile = Book.profile(Book.fetch!(book), run.evaluation.profile || options[:profile])

    with {:ok, name} <- skill(run.evaluation, View.of(book, profile)) do
      cond do
        run.variant != :without -> {:ok, profile}
        name == nil -> {:error, no_skill(run.evaluation)}
        true -> {:ok, without(profile, View.of(book, profile), name)}
      end
    end
  end

  # The entry under test, as the profile sees it.
  @doc false
  def skill(%{skill: name}, view) when is_binary(name) do
    with {:ok, entry} <- View.fetch(view, name), do: {:ok, entry.name}
  end

  def skill(%{beside: nil}, _view), do: {:ok, nil}

  def skill(%{beside: path}, view) do
    {:ok,
     view |> View.entries() |> Enum.find_value(&if(Path.expand(&1.path) == path, do: &1.name))}
  end

  defp no_skill(evaluation) do
    %ArgumentError{
      message:
        "expected the skill under test, to leave it out, got none: write `skill: NAME` in " <>
          "#{evaluation.path}, or place the file beside a skill that the profile sees"
    }
  end

  # Names may contain characters of globs.
  defp without(profile, view, name) do
    others = for entry <- View.entries(view), entry.name != name, do: entry.name
    Profile.narrow(profile, Enum.map(others, &String.replace(&1, ~r/[\\?*\[\]{}]/, "[\\0]")))
  end

  # Commands of the author, who is not asked about them.
  defp setup(%{setup: []}, _book, _profile), do: :ok

  defp setup(evaluation, book, profile) do
    view = View.of(book, %{profile | writes: :run})
    options = [on_error: :halt, by: :user]

    case Enum.find(Pipeline.commands(view, evaluation.setup, options), &(&1.status == :error)) do
      nil ->
        :ok

      failed ->
        message = "the setup `#{failed.command}` failed: #{failed.content}"
        {:error, %RuntimeError{message: message}}
    end
  end

  # The model has no tool that reads these files, so it gets their texts.
  defp requests(%{files: []} = evaluation), do: {:ok, evaluation.requests}

  defp requests(%{requests: [first | rest]} = evaluation) do
    files =
      UntilError.map(evaluation.files, fn path ->
        with {:ok, text} <- ReadFile.read(path, @max_file),
             true <- String.valid?(text) do
          {:ok, "The file #{Path.basename(path)}:\n\n#{text}"}
        else
          {:error, :efbig} -> unreadable(path, "more than #{@max_file} bytes")
          {:error, reason} -> unreadable(path, :file.format_error(reason))
          false -> unreadable(path, "a file that is no text")
        end
      end)

    with {:ok, files} <- files, do: {:ok, [Enum.join([first | files], "\n\n") | rest]}
  end

  defp unreadable(path, reason),
    do: {:error, %RuntimeError{message: "expected a text in #{path}, got: #{reason}"}}

  # Sends the messages of the user, one after the other.
  defp ask(requests, run, book, profile, model) do
    evaluation = run.evaluation
    ends = System.monotonic_time(:millisecond) + evaluation.max_time

    Enum.reduce_while(requests, {:ok, run, nil}, fn request, {:ok, run, before} ->
      options =
        [
          model: model,
          profile: profile,
          transcript: before && before.transcript,
          max_turns: max(evaluation.max_turns - run.turns, 1),
          max_time: max(ends - System.monotonic_time(:millisecond), 1),
          max_tokens: tokens_left(evaluation.max_tokens, run.usage),
          clock: fn -> evaluation.now || DateTime.utc_now() end
        ] ++ if(evaluation.system, do: [system: evaluation.system], else: [])

      case Agent.run(book, request, options) do
        {:ok, %{status: status} = result} ->
          run = add(run, result)
          halt = if status in [:done, :pending], do: :cont, else: :halt
          {halt, {:ok, run, result}}

        {:error, %AgentError{result: result} = error} ->
          {:halt, {:error, %{add(run, result) | error: error, calls: calls(book)}}}
      end
    end)
  end

  defp tokens_left(nil, _usage), do: nil

  defp tokens_left(max, usage),
    do: max(max - usage.prompt_tokens - usage.completion_tokens, 1)

  defp add(run, result) do
    %{
      run
      | text: result.text,
        turns: run.turns + result.turns,
        usage: Run.add(run.usage, result.usage),
        transcript: result.transcript
    }
  end

  # A run that fails without the judge is not judged.
  defp judged(run, nil, checks, _messages), do: decided(run, checks)

  defp judged(run, judge, checks, messages) do
    if Enum.all?(checks, & &1.passed) do
      messages = Enum.reject(messages, &(&1.kind == :prompt))

      case Judge.run(judge, run.evaluation.rubric, run, messages, []) do
        {:ok, more, usage} ->
          decided(%{run | judge_usage: Run.add(run.judge_usage, usage)}, checks ++ more)

        {:error, error} ->
          %{run | checks: checks, error: error}
      end
    else
      decided(run, checks)
    end
  end

  defp decided(run, checks) do
    status = if Enum.all?(checks, & &1.passed), do: :passed, else: :failed
    %{run | checks: checks, status: status}
  end

  # A recording of a longer conversation is not the one that was checked.
  defp replayed(%{status: :passed} = run, model, judge) do
    for %Recording{} = recording <- [model, judge], do: Recording.verify!(recording)
    run
  end

  defp replayed(run, _model, _judge), do: run
end
