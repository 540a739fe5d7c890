defmodule Skillbook.Web.Published do
  @moduledoc false
  # Publishes the entries that a caller sees as skills of the Agent Skills Discovery format:
  # `/.well-known/agent-skills/index.json` and the artifacts that it names. All else is missing,
  # and so is everything that the caller does not see. With the option `:publish` every reader is
  # the same caller, whatever it sends.
  #
  # `PUT` of a `SKILL.md` imports it into the store, for callers who may write. It gets low trust
  # and the label `imported`, whatever the sender says.

  alias Skillbook.Package.{Export, IntoStore, Publish}
  alias Skillbook.Web.Published.Cache
  alias Skillbook.Web.Page.Rights
  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.{Book, SQL, StoreError, View}

  require Logger

  # Seconds. An index and its artifacts are fetched one after the other, so none may be older than
  # the other for long.
  @max_age 60

  @spec handle(Request.t(), Skillbook.Web.t()) :: Response.t()
  def handle(%Request{method: method} = request, web) when method in ["GET", "HEAD"] do
    [".well-known", "agent-skills" | path] = request.path
    view = Caller.view(request)

    # An encoded slash is a part of a name.
    path = if Enum.any?(path, &String.contains?(&1, "/")), do: "", else: Enum.join(path, "/")

    case find(path, view, web.book) do
      {:ok, type, digest, bytes} -> answer(type, digest, bytes)
      :error -> Response.error(request, 404, "Not found.")
    end
    |> shared(request)
  end

  def handle(%Request{method: "PUT", path: [_, _, name, "SKILL.md"]} = request, _web) do
    with {:refused, status, text} <- receive_skill(request, name),
         do: Response.error(request, status, text)
  end

  def handle(%Request{method: "PUT"} = request, _web),
    do: Response.error(request, 404, "Only NAME/SKILL.md is written.")

  def handle(request, _web) do
    request
    |> Response.error(405, "Skills are read with GET, and written with PUT.")
    |> Response.put_header("allow", "GET, HEAD, PUT")
  end

  defp receive_skill(%{caller: caller} = request, name) do
    with :ok <- may_write(caller, request),
         :ok <- markdown(request),
         {:ok, action} <- IntoStore.receive(caller.view, name, request.body) do
      Response.json(if(action == :imported, do: 201, else: 200), %{name: name, action: action})
    else
      {:refused, _, _} = refused -> refused
      {:error, error} -> {:refused, status(error), Exception.message(error)}
    end
  end

  # A token for this area alone is one for reading.
  defp may_write(%{profile: profile} = caller, request) do
    label = IntoStore.label()

    cond do
      not Caller.allows?(caller, :page) ->
        {:refused, 403, "The token is for reading. Writing needs the scopes discovery and page."}

      profile.grants != :all and label not in profile.grants ->
        held = "does not hold the label #{inspect(label)}, which a sent skill gets"
        {:refused, 403, "The profile #{inspect(profile.id)} #{held}. Use one that does."}

      true ->
        with {:error, text} <- Rights.check(request), do: {:refused, 403, text}
    end
  end

  defp markdown(request) do
    type = (Request.header(request, "content-type") || "") |> String.split(";") |> hd()

    if type in ["text/markdown", "text/plain"],
      do: :ok,
      else: {:refused, 415, "Expected text/markdown, got: #{inspect(type, printable_limit: 80)}"}
  end

  defp status(%StoreError{kind: kind}) when kind in [:exists, :version_conflict], do: 409

  defp status(%StoreError{kind: kind}) when kind in [:label_not_held, :own_labels, :not_visible],
    do: 403

  defp status(%SQL.Error{}), do: 503
  defp status(_error), do: 422

  defp find("index.json", view, book) do
    {text, etag} = Cache.index(book, key(view), fn -> make_index(view) end)
    {:ok, "application/json", etag, text}
  end

  defp find(path, view, book) do
    with {:ok, skill} <- Cache.skill(book, key(view), path, fn -> make_index(view) end),
         {:ok, bytes} <- artifact(skill, view, book) do
      type = if skill.files?, do: "application/gzip", else: "text/markdown; charset=utf-8"
      {:ok, type, Publish.digest(bytes), bytes}
    else
      _ -> :error
    end
  end

  defp artifact(%{files?: true, digest: digest} = skill, view, book) do
    with :error <- Cache.archive(book, digest),
         {:ok, bytes} <- make(skill, view, book) do
      Cache.put_archive(book, digest, bytes)
      {:ok, bytes}
    end
  end

  defp artifact(skill, view, book), do: make(skill, view, book)

  # A file of the skill may have changed since the index was made, which is then made anew.
  defp make(skill, view, book) do
    with {:ok, entry} <- View.fetch(view, skill.entry),
         {:ok, made, bytes} <- Publish.artifact(view, entry, skill.name) do
      if made.digest != skill.digest, do: Cache.forget(book, key(view))
      {:ok, bytes}
    end
  end

  # Profiles with the same rights share an index.
  defp key(view), do: Book.Cache.key(View.state(view))

  defp make_index(view) do
    entries = Enum.filter(View.entries(view), &Export.own?/1)
    {skills, failed} = Publish.skills(view, entries)
    text = Publish.index(skills)

    for {name, error} <- failed,
        do: Logger.warning("#{name} is not published: #{Exception.message(error)}")

    files =
      for %{files: [_ | _] = files, path: path} <- entries,
          file <- files,
          do: Path.join(Path.dirname(path), file)

    %{text: text, etag: Publish.digest(text), skills: skills, files: files}
  end

  # Answers

  defp answer(type, digest, bytes),
    do: %Response{headers: [{"content-type", type}, {"etag", ~s("#{digest}")}], body: bytes}

  # What is published for everyone may be answered by caches and read by the pages of other
  # websites; what a caller of the book sees may not.
  defp shared(response, %Request{caller: %Caller{via: :open, scopes: [:discovery]}}) do
    response
    |> Response.put_header("cache-control", "public, max-age=#{@max_age}")
    |> Response.put_header("access-control-allow-origin", "*")
    |> Response.put_header("cross-origin-resource-policy", "cross-origin")
  end

  defp shared(response, _request), do: Response.private(response)
end
