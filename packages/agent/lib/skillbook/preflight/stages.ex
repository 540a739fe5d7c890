defmodule Skillbook.Preflight.Stages do
  @moduledoc false
  # Runs the stages of the router, each in a process that is killed at the common time limit, and
  # combines their picks. Nothing that happens in a stage reaches the caller.

  alias Skillbook.Book.Cache
  alias Skillbook.Model.Content
  alias Skillbook.Preflight
  alias Skillbook.Preflight.{Choice, Pick, ProfileCatalog, Settings, Shortlist, Subject}
  alias Skillbook.Run.Worker
  alias Skillbook.Search.Query
  alias Skillbook.{Native, Telemetry, View}

  @order [:keywords, :retrieval, :model]
  # The last messages that the model reads, and the bytes of each that count.
  @max_messages 4
  @max_bytes 16 * 1024

  @spec run(View.t(), String.t() | [Skillbook.Model.message()], Settings.t(), boolean()) ::
          Preflight.t()
  def run(view, messages, settings, explain),
    do: choose(view, :skills, fn -> Subject.skills(view) end, messages, settings, explain)

  @doc """
  The same for the profiles that a view's profile may use, or those of these ids. At most one is
  picked.
  """
  @spec profile(
          View.t(),
          String.t() | [Skillbook.Model.message()],
          Settings.t(),
          boolean(),
          [String.t()] | nil
        ) :: Preflight.t()
  def profile(view, messages, settings, explain, ids) do
    settings = %{settings | max: 1, stages: settings.stages -- [:keywords]}

    choose(
      view,
      :profiles,
      fn -> ProfileCatalog.subject(view, ids) end,
      messages,
      settings,
      explain
    )
  end

  defp choose(_view, _among, _subject, _messages, %{enabled: false}, _explain), do: %Preflight{}

  defp choose(view, among, subject, messages, settings, explain) do
    messages = recent(messages)

    if request(messages) == "" do
      %Preflight{}
    else
      metadata = %{book: view.book, profile: view.profile.id, among: among}

      Telemetry.span([:skillbook, :preflight], metadata, fn ->
        {result, cached} = cached(subject.(), messages, settings, explain)
        {:stop, result, %{picks: Enum.map(result.picks, & &1.name), cached: cached}}
      end)
    end
  end

  defp metadata(subject),
    do: %{book: subject.book, profile: subject.profile, among: subject.among}

  # The last messages of the user and the model, cut.
  defp recent(text) when is_binary(text), do: recent([%{role: :user, content: text}])

  defp recent(messages) do
    for(
      %{role: role, content: content}
      when role in [:user, :assistant] and (is_binary(content) or is_list(content)) <- messages,
      do: %{role: role, content: content |> Content.text() |> cut()}
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
  defp cached(subject, messages, settings, explain) do
    %{among: among, key: key, vectors: vectors, book: book} = subject
    key = Cache.key({among, messages, key, settings, vectors})

    with false <- explain,
         {:ok, picks} <- Cache.fetch(book, PreflightCache, key) do
      {result(subject, picks), true}
    else
      _ ->
        result = stages(subject, messages, settings)
        if cacheable?(result, vectors), do: Cache.put(book, PreflightCache, key, result.picks)
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
  defp result(subject, picks) do
    pickable = Native.view_pickable(subject.view.ref, Enum.map(picks, & &1.name))
    picks = Enum.filter(picks, &(&1.name in pickable))
    %Preflight{picks: picks, needed: picks != []}
  end

  defp stages(subject, messages, settings) do
    deadline = System.monotonic_time(:millisecond) + settings.timeout
    state = %{subject: subject, messages: messages, settings: settings, found: %{}, usage: nil}

    {stages, state} =
      @order
      |> Enum.filter(&(&1 in settings.stages and (&1 != :model or settings.model != nil)))
      |> Enum.map_reduce(state, &stage(&1, &2, deadline))

    picks = picks(state.found, settings)
    %Preflight{picks: picks, needed: picks != [], stages: stages, usage: state.usage}
  end

  defp stage(stage, state, deadline) do
    began = System.monotonic_time()
    {status, error, found, usage} = outcome(attempt(stage, state, deadline))
    duration = System.monotonic_time() - began

    Telemetry.event(
      [:skillbook, :preflight, :stage],
      %{duration: duration},
      Map.merge(metadata(state.subject), %{stage: stage, status: status})
    )

    report = %{
      stage: stage,
      status: status,
      duration: System.convert_time_unit(duration, :native, :microsecond),
      error: error,
      candidates: found
    }

    # A stage that did not end has not decided anything. One that was not needed adds nothing.
    found =
      if status in [:ok, :skipped], do: Map.put(state.found, stage, found), else: state.found

    {report, %{state | found: found, usage: usage || state.usage}}
  end

  defp attempt(stage, state, deadline) do
    case deadline - System.monotonic_time(:millisecond) do
      left when left > 0 ->
        state.subject.book
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
  defp outcome({:ok, :not_needed}), do: {:skipped, nil, [], nil}
  defp outcome({:ok, {:error, error}}), do: {:failed, Exception.message(error), [], nil}
  defp outcome(:timeout), do: {:timeout, "the time limit was reached", [], nil}

  # The text of a crash may repeat the messages.
  defp outcome({:crash, {%error{}, _stack}}), do: {:failed, "crashed: #{inspect(error)}", [], nil}
  defp outcome({:crash, _reason}), do: {:failed, "crashed", [], nil}

  defp find(:keywords, state, _left),
    do: {:ok, for(found <- triggered(state), do: Map.delete(found, :keyword)), nil}

  defp find(:retrieval, %{subject: subject} = state, _left) do
    request = request(state.messages)
    {:ok, Native.view_retrieve(subject.view.ref, request, subject.meaning.(request)), nil}
  end

  defp find(:model, %{subject: subject, settings: settings} = state, left) do
    triggered = triggered(state)
    shown = Shortlist.names(subject, state.messages, Enum.map(triggered, & &1.name))

    if decided?(shown, triggered, state),
      do: :not_needed,
      else: Choice.find(subject, state.messages, shown, settings, left)
  end

  defp triggered(%{subject: subject, messages: messages}),
    do: Native.view_triggered(subject.view.ref, request(messages))

  # Whether no answer of the model could change the picks, or none could have a reason. Keywords
  # are always picked, and a message may need several entries. So it is decided if there is
  # nothing more to pick, no place left, no word beside the keywords, or no word at all.
  defp decided?(shown, triggered, %{found: found, settings: settings, messages: messages}) do
    picked =
      for %{name: name, confidence: confidence} <- found[:keywords] || [],
          confidence >= settings.threshold,
          do: name

    shown -- picked == [] or length(picked) >= settings.max or
      (picked != [] and said(messages) -- said(triggered) == []) or
      (match?([_], messages) and Query.words(request(messages)) == [])
  end

  # The stems of the words that say something about the subject.
  defp said([%{content: _} | _] = messages), do: stems(request(messages))
  defp said(triggered), do: Enum.flat_map(triggered, &stems(&1.keyword))

  defp stems(text), do: for({_form, stem, false} <- Query.words(text), uniq: true, do: stem)

  # A model that was asked has seen the candidates, so its answer replaces their confidence. What
  # an author chose as a keyword comes before what the router found.
  defp picks(found, settings) do
    stages = if found[:model], do: [:keywords, :model], else: [:keywords, :retrieval]

    candidates =
      for stage <- stages,
          candidate <- Enum.sort_by(found[stage] || [], &(-&1.confidence)),
          do: {stage, candidate}

    candidates
    |> Enum.map(fn {_stage, found} -> {found.name, found.confidence} end)
    |> Native.route_picks(settings.threshold, settings.max)
    |> Enum.map(fn place ->
      {stage, found} = Enum.at(candidates, place)
      struct!(Pick, found |> Map.take([:name, :confidence, :reason]) |> Map.put(:stage, stage))
    end)
  end
end
