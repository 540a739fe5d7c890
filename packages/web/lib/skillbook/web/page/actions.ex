defmodule Skillbook.Web.Page.Actions do
  @moduledoc false
  # Actions on an entry as a whole: enabling, disabling, deleting, and its download.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Parts

  alias Skillbook.Package.Archive.Pack
  alias Skillbook.Package.{Export, Skill}
  alias Skillbook.Store
  alias Skillbook.Support.Number
  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.Web.Page.{Entry, Layout, Skills}

  @doc "Enables an entry."
  def enable(request, %{name: name}), do: switch(request, name, &Store.enable/2, "enabled")

  @doc "Disables an entry."
  def disable(request, %{name: name}), do: switch(request, name, &Store.disable/2, "disabled")

  defp switch(request, name, function, done) do
    Entry.with_switch(request, name, fn ->
      case function.(Caller.view(request), name) do
        {:ok, _stored} -> Response.redirect(303, after_switch(request, name, done))
        {:error, error} -> refused(request, error)
      end
    end)
  end

  # Back to the list whose row had the switch, or to the page of the entry.
  defp after_switch(request, name, done) do
    case Request.form(request) do
      {:ok, %{"list" => list}} when is_binary(list) ->
        Skills.after_switch(request, list, name, done)

      _other ->
        Request.path(request, ["skills", name], done: done)
    end
  end

  @doc "Asks whether to delete an entry."
  def confirm(request, %{name: name}) do
    Entry.with_stored(request, name, fn stored ->
      question =
        tag(:div, [data_confirm: true], [
          tag(:p, [], [
            "Delete ",
            tag(:strong, [], name),
            "? Its versions stay, and restoring one brings it back."
          ]),
          form(request, ["skills", name, "delete"], [
            tag(:input, type: "hidden", name: "version", value: stored.version),
            tag(:div, [class: "buttons"], [
              tag(:button, [type: "submit", class: "danger"], "Delete"),
              tag(
                :a,
                [
                  class: "button",
                  href: Layout.path(request, ["skills", name]),
                  data_cancel: true
                ],
                "Cancel"
              )
            ])
          ])
        ])

      Layout.page(request, "Delete " <> name, question,
        section: :skills,
        back: {name, Layout.path(request, ["skills", name])}
      )
    end)
  end

  @doc "Deletes an entry, if it is still at the version that the question was about."
  def delete(request, %{name: name}) do
    Entry.with_stored(request, name, fn _stored ->
      with {:ok, %{"version" => text}} when is_binary(text) <- Request.form(request),
           {version, ""} when version > 0 <- Number.integer(text),
           view = Caller.view(request),
           {:ok, _stored} <- Store.delete(view, name, expected_version: version) do
        path = ["skills", name, "versions"]
        Response.redirect(303, Request.path(request, path, done: "deleted"))
      else
        {:error, error} -> refused(request, error)
        _unreadable -> Layout.failed(request, 400, "The form cannot be read.")
      end
    end)
  end

  defp refused(request, error),
    do: Layout.failed(request, Entry.status(error), sentence(Exception.message(error)))

  @doc "Answers with an entry as a folder of the Agent Skills format, in an archive."
  def export(request, %{name: name}) do
    Entry.with_entry(request, name, fn
      %{entry: nil} ->
        Layout.failed(request, 409, "A disabled entry cannot be exported. Enable it first.")

      %{entry: entry} ->
        folder = Skill.normalize(entry.name) || "skill"

        case Export.files(Caller.view(request), entry, folder) do
          {:ok, files} -> archive(folder, files)
          {:error, error} -> refused(request, error)
        end
    end)
  end

  defp archive(folder, files) do
    files = for {item, data} <- files, do: {%{item | path: folder <> "/" <> item.path}, data}

    %Response{body: Pack.tar_gz(files)}
    |> Response.put_header("content-type", "application/gzip")
    |> Response.put_header("content-disposition", ~s(attachment; filename="#{folder}.tar.gz"))
  end
end
