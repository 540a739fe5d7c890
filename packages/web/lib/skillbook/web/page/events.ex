defmodule Skillbook.Web.Page.Events do
  @moduledoc false
  # The stream that tells open pages about changes: an event names a topic, and the page
  # fetches its own address again. It has no other data.
  #
  # An event goes out only if the caller's own view has changed, so the stream says nothing about
  # entries that it may not see. Changes that come together are one event.

  alias Skillbook.Catalog.{ChangedFiles, Watcher}
  alias Skillbook.Store.Read
  alias Skillbook.Web.{Caller, Response}
  alias Skillbook.Web.Page.{Chats, Findings, Layout}
  alias Skillbook.{Profile, View}

  # Milliseconds in which changes are collected.
  @pause 100

  # The messages of a book; those after which values are compared, those that have what they are
  # about, and the one after which all may have changed.
  @remembered [:skillbook, :skillbook_approval, :skillbook_disabled]
  @tags @remembered ++
          [:skillbook_run, :skillbook_agent_run, :skillbook_files, :skillbook_chat] ++
          [:skillbook_started]

  @topics ~w(skills diagnostics approvals runs agents chat)

  @doc "Answers with the stream."
  def stream(request, _values) do
    %{book: book} = view = Caller.view(request)
    caller = %{operator?: request.caller.operator?, view: view}

    Response.events(fn send_event ->
      :ok = Skillbook.subscribe(book)
      # Only those of the caller's own conversations come.
      if Layout.writes?(request), do: Watcher.subscribe(book, Chats.group(request.caller))
      remember(Enum.flat_map(@remembered, &topics(&1, caller)))
      send_event.("ready", "")

      fn message ->
        if change?(message, book), do: changed(message, caller, send_event)
      end
    end)
  end

  defp change?({tag, book, _change}, book) when tag in @tags, do: true
  defp change?(_message, _book), do: false

  defp changed(message, %{view: %{book: book} = view} = caller, send_event) do
    Process.sleep(@pause)
    messages = [message | more(book)]
    caller = %{caller | view: View.of(book, view.profile)}
    tags = messages |> Enum.map(&elem(&1, 0)) |> Enum.uniq()
    tags = if :skillbook_started in tags, do: @tags, else: tags
    now = for tag <- @remembered, tag in tags, topic <- topics(tag, caller), do: topic
    runs = if Enum.any?(messages, &run?(&1, caller)), do: ["runs"], else: []
    files = if Enum.any?(messages, &files?(&1, caller)), do: ["skills"], else: []
    chats = if :skillbook_chat in tags, do: ["chat"], else: []
    agents = if Enum.any?(messages, &agent_run?(&1, caller)), do: ["agents"], else: []
    restart = if :skillbook_started in tags, do: @topics, else: []
    topics = restart ++ remember(now) ++ runs ++ agents ++ files ++ chats
    for topic <- Enum.uniq(topics), do: send_event.(topic, "")
  end

  # Whether a file of an entry in the view has changed.
  defp files?({:skillbook_files, _book, files}, %{view: view}),
    do: ChangedFiles.any?(files, view, & &1.files)

  defp files?(_other, _caller), do: false

  # Whether a message is about a run that the pages show to the caller.
  defp run?({:skillbook_run, _book, %{name: name} = run}, %{view: view} = caller) do
    all? = caller.operator? or Profile.unrestricted?(view.profile)

    (all? or run.profile == view.profile.id) and Profile.reads?(view.profile, run.tenant) and
      match?({:ok, %{name: ^name}}, View.fetch(view, name))
  end

  defp run?(_other, _caller), do: false

  defp agent_run?({:skillbook_agent_run, _book, run}, caller),
    do: caller.operator? and Profile.reads?(caller.view.profile, run.tenant)

  defp agent_run?(_other, _caller), do: false

  # The other changes that have come.
  defp more(book) do
    receive do
      {tag, ^book, _} = message when tag in @tags -> [message | more(book)]
    after
      0 -> []
    end
  end

  # Values that differ if a topic has changed for the view.
  defp topics(:skillbook, %{view: view} = caller) do
    [
      {"skills", :entries, view.generation},
      {"diagnostics", :all, :erlang.phash2(Findings.hash(caller))}
    ]
  end

  # The view has no disabled entries of the store, and the pages show them.
  defp topics(:skillbook_disabled, %{view: view}) do
    with {:ok, entries} <- Read.disabled(view),
         do: [{"skills", :disabled, :erlang.phash2(Enum.map(entries, &{&1.id, &1.version}))}],
         else: ({:error, _no_store} -> [])
  end

  # Operators see those of all profiles.
  defp topics(:skillbook_approval, %{view: view} = caller) do
    options = if caller.operator?, do: [tenant: view.profile.tenant], else: []

    with {:ok, approvals} <-
           Skillbook.approvals(if(caller.operator?, do: view.book, else: view), options),
         do: [{"approvals", :all, :erlang.phash2(approvals)}],
         else: ({:error, _no_store} -> [])
  end

  # The stream's process has only this state. Returns the topics with a value that is new.
  defp remember(topics) do
    for {topic, part, value} <- topics,
        Process.put({__MODULE__, topic, part}, value) != value,
        do: topic
  end
end
