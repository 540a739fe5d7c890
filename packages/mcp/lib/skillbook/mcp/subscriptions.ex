defmodule Skillbook.MCP.Subscriptions do
  @moduledoc false
  # Tells a client that its lists or its resources have changed. Changes of a book name entries of
  # all labels; a client hears of one only if its own view differs. Entries that a change does not
  # name are not compared, so a change costs as much as its size, for each client.

  alias Skillbook.Catalog.ChangedFiles
  alias Skillbook.MCP.{Context, Error, Prompts, Protocol, Resources, Session, Tools}
  alias Skillbook.{Book, Catalog, Change, Entry, View}

  @typedoc "The changes that a client wants to hear of."
  @type filter :: %{
          tools: boolean(),
          prompts: boolean(),
          resources: boolean(),
          uris: [String.t()]
        }

  @max_uris 1_000
  @max_uri 2_048

  # Parameters

  @doc "Reads the parameters of `subscriptions/listen`."
  @spec filter(map()) :: {:ok, filter()} | {:error, Error.t()}
  def filter(%{"notifications" => %{} = wanted}) do
    uris = Map.get(wanted, "resourceSubscriptions", [])

    if uris?(uris) do
      {:ok,
       %{
         tools: wanted["toolsListChanged"] == true,
         prompts: wanted["promptsListChanged"] == true,
         resources: wanted["resourcesListChanged"] == true,
         uris: Enum.uniq(uris)
       }}
    else
      {:error,
       Error.params(
         "expected at most #{@max_uris} URIs of at most #{@max_uri} bytes as " <>
           "`resourceSubscriptions`"
       )}
    end
  end

  def filter(_params), do: {:error, Error.params("expected an object as `notifications`")}

  defp uris?(uris) do
    is_list(uris) and length(uris) <= @max_uris and
      Enum.all?(uris, &(is_binary(&1) and byte_size(&1) <= @max_uri))
  end

  @doc "The filter of a session, which hears of all lists, and of the URIs that it subscribes to."
  @spec all([String.t()]) :: filter()
  def all(uris), do: %{tools: true, prompts: true, resources: true, uris: uris}

  # The filter as `notifications/subscriptions/acknowledged` has it.
  defp acknowledged(filter) do
    lists =
      for {name, true} <- [
            {"toolsListChanged", filter.tools},
            {"promptsListChanged", filter.prompts},
            {"resourcesListChanged", filter.resources}
          ],
          into: %{},
          do: {name, true}

    if filter.uris == [], do: lists, else: Map.put(lists, "resourceSubscriptions", filter.uris)
  end

  # Sessions

  @spec handle(String.t(), map(), Context.t()) :: {:ok, map()} | {:error, Error.t()}
  def handle(method, params, context) do
    uri = params["uri"]

    cond do
      not (is_binary(uri) and byte_size(uri) <= @max_uri) ->
        {:error, Error.params("expected a `uri` of at most #{@max_uri} bytes")}

      context.session == nil ->
        {:error, Error.internal("subscriptions need a session")}

      true ->
        change(method, uri, context.session)
    end
  end

  defp change(method, uri, session) do
    answer =
      if method == "resources/subscribe",
        do: Session.subscribe(session, uri, @max_uris),
        else: Session.unsubscribe(session, uri)

    case answer do
      :ok -> {:ok, %{}}
      :full -> {:error, Error.limit("expected at most #{@max_uris} subscriptions of a session")}
      {:error, reason} -> {:error, Error.session(reason)}
    end
  end

  # Streams

  @doc "The first message of a stream, and its last one if the server ends it."
  @spec opened(Protocol.id(), filter()) :: map()
  def opened(id, filter) do
    Protocol.notification("notifications/subscriptions/acknowledged", %{
      "notifications" => acknowledged(filter),
      "_meta" => meta(id)
    })
  end

  @spec closed(Protocol.id()) :: map()
  def closed(id) do
    meta = Map.merge(Protocol.server_meta(), meta(id))
    Protocol.result(id, %{"resultType" => "complete", "_meta" => meta})
  end

  defp meta(id), do: %{Protocol.meta("subscriptionId") => id}

  @doc """
  The notifications after a change, and the context to compare the next one with.

  `id` is that of the request that opened the stream, or `nil` for a session.
  """
  @spec changed(Change.t(), Context.t(), filter(), Protocol.id() | nil) ::
          {[map()], Context.t()}
  def changed(%Change{} = change, %Context{view: old} = context, filter, id) do
    new = View.of(old.book, context.profile)
    now = %{context | view: new}
    # A later change may be on its way. It is compared with the same view, or it would be lost.
    last? = Catalog.generation(Book.fetch!(old.book).catalog) == change.generation
    next = if last?, do: now, else: context
    names = change.added ++ change.changed ++ change.removed

    if names == [] or new.generation == old.generation do
      {[], next}
    else
      # Most of them may be entries of others.
      names = Enum.filter(names, &(View.find(old, &1) != View.find(new, &1)))
      {messages(context, now, names, filter, id), next}
    end
  end

  @doc "The notifications after a change of files beside skills."
  @spec files(ChangedFiles.t(), Context.t(), filter(), Protocol.id() | nil) :: [map()]
  def files(changed, %Context{} = context, filter, id),
    do: changed |> Resources.changed_files(context, filter.uris) |> resources(filter, id)

  defp messages(old, new, names, filter, id) do
    differs = fn part -> Enum.any?(names, &(part.(&1, old) != part.(&1, new))) end

    lists =
      for {true, true, name} <- [
            {filter.tools, filter.tools and differs.(&tool/2), "tools"},
            {filter.prompts, filter.prompts and differs.(&prompt/2), "prompts"}
          ],
          do: list_changed(name, id)

    lists ++ (old |> Resources.changes(new, names, filter.uris) |> resources(filter, id))
  end

  defp resources(changes, filter, id) do
    list = if filter.resources and changes.list, do: [list_changed("resources", id)], else: []

    updated =
      for uri <- changes.updated,
          do: message("notifications/resources/updated", %{"uri" => uri}, id)

    list ++ updated
  end

  defp list_changed(name, id), do: message("notifications/#{name}/list_changed", %{}, id)

  defp message(method, params, nil), do: Protocol.notification(method, params)

  defp message(method, params, id),
    do: Protocol.notification(method, Map.put(params, "_meta", meta(id)))

  # The rows of a name in the lists of a client.
  defp tool(name, context) do
    with %Entry{name: ^name, kind: kind} = entry when kind != :note <-
           View.find(context.view, name),
         {:ok, ^entry} <-
           Skillbook.Tools.find(context.view, name, context.options[:tools][:names]),
         tool when tool != nil <- Skillbook.Tools.one(entry, context.view),
         do: Tools.definition(tool, context),
         else: (_ -> nil)
  end

  defp prompt(name, context) do
    with %Entry{name: ^name} = entry <- View.find(context.view, name),
         true <- Prompts.prompt?(entry, context),
         do: Prompts.definition(entry, context.view),
         else: (_ -> nil)
  end
end
