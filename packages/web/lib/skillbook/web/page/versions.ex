defmodule Skillbook.Web.Page.Versions do
  @moduledoc false
  # The versions of an entry of the store: their list, the difference of two, and restoring one.
  # Deleted entries have them too.

  import Skillbook.Web.Html, only: [tag: 3]
  import Skillbook.Web.Page.Parts

  alias Skillbook.Store
  alias Skillbook.Support.Number
  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.Web.Page.{Edit, Entry, Layout, Report, Rights}

  @page_size 100

  @doc "Answers with the newest versions, or those before one."
  def index(request, %{name: name}) do
    with_newest(request, name, fn newest ->
      {shown, next} = versions(request, name, integer(Request.query(request)["after"]))

      if Request.wants_json?(request) do
        Response.json(200, %{versions: Enum.map(shown, &json/1), next: next})
      else
        Layout.page(
          request,
          "Versions of " <> name,
          [
            live("versions", "skills", [
              if(Request.query(request)["done"] == "deleted",
                do: done("It is deleted. Its versions stay, and restoring one brings it back.")
              ),
              list(request, name, shown)
            ]),
            further(request, ["skills", name, "versions"], next)
          ],
          section: :skills,
          back:
            if(newest.action == :delete,
              do: {"Skills", Layout.path(request, ["skills"])},
              else: {name, Layout.path(request, ["skills", name])}
            )
        )
      end
    end)
  end

  # One more is read, to know whether there are older ones.
  defp versions(request, name, last) do
    place = with {number, ""} when number > 0 <- last, do: [after: number], else: (_ -> [])
    options = [limit: @page_size + 1] ++ place

    case Store.history(Caller.view(request), name, options) do
      {:ok, versions} ->
        {shown, more} = Enum.split(versions, @page_size)
        {shown, if(more != [], do: List.last(shown).version)}

      {:error, _gone} ->
        {[], nil}
    end
  end

  defp json(version) do
    version
    |> Map.take([:version, :action, :by, :author, :at])
    |> Map.merge(Map.take(version.entry, [:title, :labels, :tags, :enabled]))
  end

  # The store also takes titles and other spellings, which are no addresses.
  defp with_newest(request, name, fun) do
    case Store.history(Caller.view(request), name, limit: 1) do
      {:ok, [%{entry: %{name: ^name}} = newest]} -> fun.(newest)
      _other -> Layout.not_found(request)
    end
  end

  @actions %{
    create: "created",
    update: "changed",
    enable: "enabled",
    disable: "disabled",
    delete: "deleted",
    restore: "restored"
  }

  defp list(request, name, versions) do
    rows =
      for version <- versions do
        path = Layout.path(request, ["skills", name, "versions", "#{version.version}"])

        [
          tag(:a, [href: path], "Version #{version.version}"),
          @actions[version.action],
          [version.author, " ", if(version.by != :user, do: badge(Atom.to_string(version.by)))],
          time(version.at),
          Enum.join(version.entry.labels, ", ")
        ]
      end

    table("Versions, the newest first", ["Version", "What", "By", "When", "Labels"], rows,
      hide_caption: true
    )
  end

  @doc "Answers with one version, and how it differs from the one before or from another."
  def show(request, %{name: name, number: text}) do
    with_newest(request, name, fn newest ->
      view = Caller.view(request)

      with {number, ""} when number > 0 <- Number.integer(text),
           {:ok, version} <- Store.version(view, name, number) do
        if Request.wants_json?(request),
          do: Response.json(200, Map.put(json(version), :content, version.entry.content)),
          else: page(request, version, newest.version, other(request, name, number, newest))
      else
        _none -> Layout.not_found(request)
      end
    end)
  end

  # The version to compare with: by default the one before; for the first one, the newest.
  defp other(request, name, number, newest) do
    view = Caller.view(request)

    with {other, ""} when other > 0 <- integer(Request.query(request)["with"]),
         {:ok, _version} <- Store.version(view, name, other) do
      other
    else
      _none ->
        case Store.history(view, name, limit: 1, after: number) do
          {:ok, [before]} -> before.version
          _none -> if newest.version != number, do: newest.version
        end
    end
  end

  defp page(request, version, newest, other) do
    %{entry: %{name: name} = entry, version: number} = version

    Layout.page(
      request,
      "Version #{number} of #{name}",
      [
        facts([
          {"What", @actions[version.action]},
          {"By", version.author},
          {"When", time(version.at)},
          {"Title", entry.title},
          {"Labels", Enum.join(entry.labels, ", ")},
          {"Tags", Enum.join(entry.tags, ", ")}
        ]),
        compare(request, name, number, other),
        Entry.beside(Edit.rendered(entry), entry.content)
      ],
      section: :skills,
      back: {"Versions of " <> name, Layout.path(request, ["skills", name, "versions"])},
      actions:
        if number != newest and Rights.check(request) == :ok do
          button(request, ["skills", name, "restore"], "Restore this version",
            fields: [{"number", "#{number}"}, {"version", "#{newest}"}],
            class: "primary"
          )
        end
    )
  end

  defp compare(_request, _name, _number, nil), do: nil

  defp compare(request, name, number, other) do
    {newest, _next} = versions(request, name, nil)
    numbers = Enum.sort(Enum.uniq([other | Enum.map(newest, & &1.version)]), :desc)
    # From the older one to the newer one.
    {from, to} = {min(other, number), max(other, number)}
    action = Request.path(request, ["skills", name, "versions", "#{number}"])

    difference =
      case Store.diff(Caller.view(request), name, from, to) do
        {:ok, diff} ->
          [
            diff(diff.content, "Text, from version #{from} to #{to}"),
            Edit.table_of(diff.fields, "Other fields, from version #{from} to #{to}")
          ]

        {:error, _gone} ->
          nil
      end

    [
      tag(:form, [method: "get", action: action, class: "search"], [
        Report.keep_as(request),
        tag(:label, [for: "with"], "Compare with version"),
        tag(
          :select,
          [id: "with", name: "with"],
          for one <- numbers, one != number do
            tag(:option, [value: "#{one}", selected: one == other], "#{one}")
          end
        ),
        tag(:button, [type: "submit"], "Compare")
      ]),
      difference
    ]
  end

  @doc "Restores a version."
  def restore(request, %{name: name}) do
    Rights.with_writes(request, fn ->
      with_newest(request, name, fn _newest ->
        with {:ok, fields} <- Request.form(request),
             {number, ""} when number > 0 <- integer(fields["number"]),
             {version, ""} when version > 0 <- integer(fields["version"]),
             view = Caller.view(request),
             {:known, {:ok, _}} <- {:known, Store.version(view, name, number)},
             # The last number of the history; of a deleted entry it is that of its deletion.
             options = [expected_version: version],
             {:ok, stored} <- Store.restore(view, name, number, options) do
          Response.redirect(303, Request.path(request, ["skills", stored.name], done: "restored"))
        else
          {:error, error} ->
            Layout.failed(request, Entry.status(error), sentence(Exception.message(error)))

          {:known, _unknown} ->
            Layout.not_found(request)

          _unreadable ->
            Layout.failed(request, 400, "The form cannot be read.")
        end
      end)
    end)
  end

  defp integer(text) when is_binary(text), do: Number.integer(text)
  defp integer(_none), do: :error
end
