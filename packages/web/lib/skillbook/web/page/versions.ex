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

  @max_versions 500

  @doc "Answers with the list of versions."
  def index(request, %{name: name}) do
    with_history(request, name, fn versions ->
      if Request.wants_json?(request) do
        Response.json(200, %{versions: Enum.map(versions, &json/1)})
      else
        deleted? = match?([%{action: :delete} | _], versions)

        Layout.page(
          request,
          "Versions of " <> name,
          live("versions", "skills", [
            if(Request.query(request)["done"] == "deleted",
              do: done("It is deleted. Its versions stay, and restoring one brings it back.")
            ),
            if(length(versions) > @max_versions,
              do: tag(:p, [class: "help"], "The newest #{@max_versions} of #{length(versions)}.")
            ),
            list(request, name, Enum.take(versions, @max_versions))
          ]),
          section: :skills,
          back:
            if(deleted?,
              do: {"Skills", Layout.path(request, ["skills"])},
              else: {name, Layout.path(request, ["skills", name])}
            )
        )
      end
    end)
  end

  defp json(version) do
    version
    |> Map.take([:version, :action, :by, :author, :at])
    |> Map.merge(Map.take(version.entry, [:title, :labels, :tags, :enabled]))
  end

  # The store also takes titles and other spellings, which are no addresses.
  defp with_history(request, name, fun) do
    case Store.history(Caller.view(request), name) do
      {:ok, [%{entry: %{name: ^name}} | _] = versions} -> fun.(versions)
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
    with_history(request, name, fn versions ->
      view = Caller.view(request)

      with {number, ""} when number > 0 <- Number.integer(text),
           {:ok, version} <- Store.version(view, name, number) do
        numbers = Enum.map(versions, & &1.version)
        other = other(Request.query(request)["with"], numbers, number)

        if Request.wants_json?(request),
          do: Response.json(200, Map.put(json(version), :content, version.entry.content)),
          else: page(request, version, numbers, other)
      else
        _none -> Layout.not_found(request)
      end
    end)
  end

  # The version to compare with: by default the one before.
  defp other(text, numbers, number) do
    with text when is_binary(text) <- text,
         {other, ""} <- Number.integer(text),
         true <- other in numbers do
      other
    else
      _none -> Enum.find(numbers, &(&1 < number))
    end
  end

  defp page(request, version, numbers, other) do
    %{entry: %{name: name} = entry, version: number} = version
    newest = hd(numbers)

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
        compare(request, name, number, other, numbers),
        Entry.beside(Edit.rendered(entry), entry.content)
      ],
      section: :skills,
      back: {"Versions of " <> name, Layout.path(request, ["skills", name, "versions"])},
      actions:
        if Rights.check(request) == :ok do
          button(request, ["skills", name, "restore"], "Restore this version",
            fields: [{"number", "#{number}"}, {"version", "#{newest}"}],
            class: "primary"
          )
        end
    )
  end

  defp compare(_request, _name, _number, nil, _numbers), do: nil

  defp compare(request, name, number, other, numbers) do
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
      with_history(request, name, fn versions ->
        with {:ok, fields} <- Request.form(request),
             {number, ""} when number > 0 <- integer(fields["number"]),
             {version, ""} when version > 0 <- integer(fields["version"]),
             {:known, true} <- {:known, Enum.any?(versions, &(&1.version == number))},
             # The last number of the history; of a deleted entry it is that of its deletion.
             options = [expected_version: version],
             {:ok, stored} <- Store.restore(Caller.view(request), name, number, options) do
          Response.redirect(303, Request.path(request, ["skills", stored.name], done: "restored"))
        else
          {:error, error} ->
            Layout.failed(request, Entry.status(error), sentence(Exception.message(error)))

          {:known, false} ->
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
