defmodule Skillbook.Preflight.Router do
  @moduledoc false
  # Runs the stages of the router, each in a process that is killed at the common time limit, and
  # combines their picks. Nothing that happens in a stage reaches the caller.

  alias Skillbook.Book.Cache
  alias Skillbook.Embedding.Entries
  alias Skillbook.Preflight
  alias Skillbook.Preflight.{Choice, Pick, Retrieval, Settings}
  alias Skillbook.Run.Worker
  alias Skillbook.{Native, Profile, Telemetry, View}

  @order [:keywords, :retrieval, :model]
  # The last messages that the model reads, and the bytes of each that count.
  @max_messages 4
  @max_bytes 16 * 1024
  # A keyword is its author's own choice.
  @keyword_confidence 0.95

  @spec run(View.t(), String.t() | [Skillbook.Model.message()], Settings.t(), boolean()) ::
          Preflight.t()
  def run(_view, _messages, %{enabled: false}, _explain), do: %Preflight{}

  def run(view, messages, settings, explain) do
    messages = recent(messages)

    if request(messages) == "" do
      %Preflight{}
    else
      Telemetry.span([:skillbook, :preflight], metadata(view), fn ->
        {result, cached} = cached(view, messages, settings, explain)
        {:stop, result, %{picks: Enum.map(result.picks, & &1.name), cached: cached}}
      end)
    end
  end

  defp metadata(view), do: %{book: view.book, profile: view.profile.id}

  # The last messages of the user and the model, cut.
  defp recent(text) when is_binary(text), do: recent([%{role: :user, content: text}])

  defp recent(messages) do
    for(
      %{role: role, content: content} when role in [:user, :assistant] and is_binary(content) <-
        messages,
      do: %{role: role, content: cut(content)}
    )
    |> Enum.take(-@max_messages)
  end

  defp cut(text) do
    text = binary_part(text, 0, min(byte_size(text), @max_bytes))

    case :unicode.characters_to_binary(text) do
      text when is_binary(text) -> String.trim(text)
      {_error, valid, _rest} -> String.trim(valid)
    end
  end

  defp request(messages) do
    case List.last(messages) do
      %{role: :user, content: text} -> text
      _ -> ""
    end
  end

  # The picks are read from the cache for the same texts, settings and visible entries.
  defp cached(view, messages, settings, explain) do
    %{tenant: tenant, grants: grants} = view.profile
    profile = {Profile.ids(view.profile), tenant, grants, Profile.globs(view.profile)}
    # The vectors of entries are made in the background.
    vectors = Entries.progress(view)
    key = Cache.key({messages, view.generation, profile, settings, vectors})

    with false <- explain,
         {:ok, picks} <- Cache.fetch(view.book, PreflightCache, key) do
      {result(view, picks), true}
    else
      _ ->
        result = stages(view, messages, settings)

        if cacheable?(result, vectors),
          do: Cache.put(view.book, PreflightCache, key, result.picks)

        {result, false}
    end
  end

  # Without a vector of the request, the embedder has failed.
  defp cacheable?(result, vectors) do
    candidates =
      for %{stage: :retrieval} = stage <- result.stages, found <- stage.candidates, do: found

    embedded? = vectors == nil or vectors.done == 0 or Enum.any?(candidates, & &1.similarity)

    Enum.all?(result.stages, &(&1.status in [:ok, :skipped])) and
      (candidates == [] or embedded?)
  end

  # Keys are hashes, so a picked entry is looked up again.
  defp result(view, picks) do
    pickable = Native.view_pickable(view.ref, Enum.map(picks, & &1.name))
    picks = Enum.filter(picks, &(&1.name in pickable))
    %Preflight{picks: picks, needed: picks != []}
  end

  defp stages(view, messages, settings) do
    deadline = System.monotonic_time(:millisecond) + settings.timeout
    state = %{view: view, messages: messages, settings: settings, found: %{}, usage: nil}

    {stages, state} =
      @order
      |> Enum.filter(&(&1 in settings.stages and (&1 != :model or settings.model != nil)))
      |> Enum.map_reduce(state, &stage(&1, &2, deadline))

    picks = picks(state.found, settings)
    %Preflight{picks: picks, needed: picks != [], stages: stages, usage: state.usage}
  end

  defp stage(stage, state, deadline) do
    began = System.monotonic_time()

    {status, error, found, usage} =
      if needed?(stage, state.found),
        do: outcome(attempt(stage, state, deadline)),
        else: {:skipped, nil, [], nil}

    duration = System.monotonic_time() - began

    Telemetry.event(
      [:skillbook, :preflight, :stage],
      %{duration: duration},
      Map.merge(metadata(state.view), %{stage: stage, status: status})
    )

    report = %{
      stage: stage,
      status: status,
      duration: System.convert_time_unit(duration, :native, :microsecond),
      error: error,
      candidates: found
    }

    # A stage that did not end has not decided anything.
    found = if status == :ok, do: Map.put(state.found, stage, found), else: state.found
    {report, %{state | found: found, usage: usage || state.usage}}
  end

  # The model is asked only where the other stages leave a doubt.
  defp needed?(:model, %{keywords: [_ | _]}), do: false
  defp needed?(:model, %{retrieval: candidates}), do: Retrieval.unsure?(candidates)
  defp needed?(:model, _found), do: false
  defp needed?(_stage, _found), do: true

  defp attempt(stage, state, deadline) do
    case deadline - System.monotonic_time(:millisecond) do
      left when left > 0 ->
        state.view.book
        |> Worker.start([], fn -> find(stage, state, left) end)
        |> Worker.run(left)

      _ ->
        :timeout
    end
  catch
    # The book has stopped.
    :exit, reason -> {:crash, reason}
  end

  defp outcome({:ok, {:ok, found, usage}}), do: {:ok, nil, found, usage}
  defp outcome({:ok, {:error, error}}), do: {:failed, Exception.message(error), [], nil}
  defp outcome(:timeout), do: {:timeout, "the time limit was reached", [], nil}

  # The text of a crash may repeat the messages.
  defp outcome({:crash, {%error{}, _stack}}), do: {:failed, "crashed: #{inspect(error)}", [], nil}
  defp outcome({:crash, _reason}), do: {:failed, "crashed", [], nil}

  defp find(:keywords, %{view: view} = state, _left) do
    found =
      for {name, keyword} <- Native.view_triggered(view.ref, request(state.messages)),
          do: %{name: name, confidence: @keyword_confidence, reason: "keyword: #{keyword}"}

    {:ok, found, nil}
  end

  defp find(:retrieval, %{view: view} = state, _left),
    do: {:ok, Retrieval.find(view, request(state.messages)), nil}

  defp find(:model, state, left) do
    candidates = state.found.retrieval
    Choice.find(state.view, state.messages, candidates, state.settings, left)
  end

  # A model that was asked has seen all candidates, so its answer replaces their confidence.
  defp picks(found, settings) do
    stages = if found[:model], do: [:keywords, :model], else: [:keywords, :retrieval]

    for(
      stage <- stages,
      candidate <- found[stage] || [],
      candidate.confidence >= settings.threshold,
      do:
        struct!(Pick, Map.put(Map.take(candidate, [:name, :confidence, :reason]), :stage, stage))
    )
    |> Enum.uniq_by(& &1.name)
    |> Enum.sort_by(&(-&1.confidence))
    |> Enum.take(settings.max)
  end
end
