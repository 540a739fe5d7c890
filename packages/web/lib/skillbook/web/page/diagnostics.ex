defmodule Skillbook.Web.Page.Diagnostics do
  @moduledoc false
  # The findings about documents, with their lines, and the fixes of those that have only one.
  #
  # Operators see all, with paths, and may fix the files that the book writes to. Others see the
  # findings about the entries of their view, by the names of the entries.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Support.{Diff, ReadFile}
  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.Web.Page.{Files, Findings, Layout, Parts}
  alias Skillbook.{Book, Diagnostic, Lint, View}

  @page_size 50
  @max_fixable 20
  # Bytes of a file whose lines are shown.
  @max_file 1024 * 1024

  @doc "The findings, by severity and code."
  def index(request, _values) do
    view = Caller.view(request)
    severity = Enum.find(Findings.severities(), &(to_string(&1) == field(request, "severity")))
    code = with "" <- field(request, "code", 100), do: nil
    folder = if request.caller.operator?, do: Files.folder(request)
    advice? = field(request, "advice") == "1"
    choice = %{severity: severity, code: code, advice?: advice?, folder: folder}
    list = Findings.list(request.caller, choice, @page_size, @max_fixable)
    {page, pages, shown} = page_of(request, list.pages, 1)

    data = %{
      profile: view.profile.id,
      total: list.total,
      severities: list.severities,
      codes: list.codes,
      page: page,
      pages: pages,
      diagnostics: shown |> Enum.flat_map(&:erlang.binary_to_term/1) |> lines(request, view)
    }

    reply(request, data, :health, :diagnostics, "Problems", fn ->
      content(request, data, query(choice), list)
    end)
  end

  defp query(%{severity: severity, code: code, advice?: advice?}) do
    for {name, value} <- [
          {"severity", severity && Atom.to_string(severity)},
          {"code", code},
          {"advice", if(advice?, do: "1")}
        ],
        value != nil,
        into: %{},
        do: {name, value}
  end

  # Each finding with the name of its entry and its line. Without rights to see paths, the entry
  # is its place.
  defp lines(found, request, view) do
    operator? = request.caller.operator?
    all = if operator?, do: Caller.all(request), else: view
    entries = Map.new(found, fn {one, name} -> {one.path, name && View.find(all, name)} end)
    texts = Map.new(entries, fn {path, entry} -> {path, text(path, entry, all, operator?)} end)

    # Messages name other files, too.
    place = if operator?, do: & &1, else: &without_paths(&1, view.book)

    for {one, _name} <- found do
      entry = entries[one.path]

      %{
        code: one.code,
        severity: one.severity,
        path: if(operator?, do: one.path),
        entry: entry && entry.name,
        line: one.line,
        column: one.column,
        message: place.(one.message),
        hint: place.(one.hint),
        fix: one.fix != nil,
        text: line(texts[one.path], one.line)
      }
    end
  end

  defp without_paths(nil, _book), do: nil

  defp without_paths(text, book) do
    folders =
      for %{kind: kind, path: path} <- Book.fetch!(book).sources, kind in [:skills, :notes] do
        Path.expand(path) <> "/"
      end

    String.replace(text, folders, "")
  end

  # An entry's text is read through the view. Only a file without an entry is read itself.
  defp text(_path, %{name: name, body: body}, view, _operator?) do
    with {:ok, frontmatter} <- View.frontmatter(view, name),
         do: frontmatter <> body,
         else: (_ -> "")
  end

  defp text(path, nil, view, true) when is_binary(path) do
    with true <- below_source?(path, view.book),
         {:ok, text} <- ReadFile.regular(path, @max_file) do
      text
    else
      _unreadable -> ""
    end
  end

  defp text(_path, _entry, _view, _operator?), do: ""

  defp below_source?(path, book) do
    Enum.any?(Book.fetch!(book).sources, fn source ->
      source.kind in [:skills, :notes] and
        String.starts_with?(path, Path.expand(source.path) <> "/")
    end)
  end

  defp line(_text, nil), do: nil
  defp line("", _number), do: nil

  defp line(text, number) do
    case text |> String.split(["\r\n", "\n"]) |> Enum.fetch(number - 1) do
      {:ok, line} when line != "" -> if String.valid?(line), do: line
      _none -> nil
    end
  end

  # Fixes

  @doc "The difference that the fixes of a file make."
  def preview(request, _values) do
    for_operators(request, fn ->
      case fixes(request, field(request, "path", 4_096)) do
        {:ok, fix} -> show_preview(request, fix, nil)
        :error -> Layout.not_found(request)
      end
    end)
  end

  @doc "Writes the fixes that the preview showed."
  def fix(request, _values) do
    for_operators(request, fn ->
      with {:ok, %{"path" => path, "digest" => digest}} when is_binary(path) <-
             Request.form(request),
           {:ok, fix} <- fixes(request, path) do
        if fix.digest == digest,
          do: write(request, fix),
          else: show_preview(request, fix, "The file has changed since: look at its fixes again.")
      else
        _missing -> Layout.not_found(request)
      end
    end)
  end

  # Reads the file and its folder again, since the catalog may be older.
  defp fixes(request, path) do
    readable =
      Enum.filter(Book.fetch!(book(request)).sources, &Caller.reads?(request.caller, &1.tenant))

    with folder when folder != nil <- Files.folder(request),
         true <- Findings.below?(path, folder) and Path.expand(path) == path,
         [_ | _] = own <- Files.own(request, folder),
         diagnostics = Lint.run(own, context: readable -- own),
         {:ok, old, new, count} when count > 0 <- Lint.preview(path, diagnostics) do
      {:ok,
       %{
         path: path,
         count: count,
         digest: :sha256 |> :crypto.hash([old, 0, new]) |> Base.encode16(case: :lower),
         difference: Diff.unified(old, new),
         diagnostics: Enum.filter(diagnostics, &(&1.path == path and &1.fix != nil))
       }}
    else
      _none -> :error
    end
  end

  defp write(request, fix) do
    case Lint.apply_fixes(fix.diagnostics) do
      [{_path, {:ok, _count}}] ->
        Skillbook.reload(book(request))
        Response.redirect(303, Layout.path(request, ["diagnostics"]))

      [{_path, {:error, error}}] ->
        show_preview(request, fix, Exception.message(error))
    end
  end

  defp show_preview(request, fix, problem) do
    data = Map.take(fix, [:path, :count, :difference]) |> Map.put(:error, problem)

    content = fn ->
      [
        tag(:p, [], ["In ", tag(:code, [], fix.path), ":"]),
        tag(:ul, [], for(one <- fix.diagnostics, do: tag(:li, [], place(one) ++ [one.message]))),
        Parts.diff(fix.difference, "Changes"),
        Parts.form(request, ["diagnostics", "fix"], [
          tag(:input, type: "hidden", name: "path", value: fix.path),
          tag(:input, type: "hidden", name: "digest", value: fix.digest),
          tag(
            :button,
            [type: "submit", class: "primary"],
            "Write #{Parts.count(fix.count, "fix", "fixes")}"
          )
        ])
      ]
    end

    reply(request, data, :health, :diagnostics, "Fixes of #{Path.basename(fix.path)}", content,
      back: {"Problems", Layout.path(request, ["diagnostics"])},
      errors: problem && Parts.failure(problem),
      status: if(problem, do: 409, else: 200)
    )
  end

  defp place(%{line: nil}), do: []
  defp place(%{line: line}), do: ["line #{line}: "]

  # The page

  defp content(request, data, query, list) do
    [
      filters(request, data, query),
      fix_list(request, list),
      Parts.live("diagnostics", "diagnostics", [
        if(data.diagnostics == [],
          do: Parts.empty(if(data.total == 0, do: "No problems.", else: "None of this kind.")),
          else: tag(:ul, [class: "diagnostics"], Enum.map(data.diagnostics, &item(request, &1)))
        ),
        Parts.pages(request, ["diagnostics"], query, data.page, data.pages)
      ])
    ]
  end

  defp filters(request, data, query) do
    severities =
      for severity <- Findings.severities(),
          count = data.severities[severity],
          do: {"#{severity}", "#{severity} (#{count})"}

    codes = for {code, count} <- Enum.sort(data.codes), do: {"#{code}", "#{code} (#{count})"}
    all = {"", "all (#{data.total})"}

    query_form(request, ["diagnostics"], [
      select("severity", "Severity", query["severity"] || "", [all | severities]),
      select("code", "Code", query["code"] || "", [{"", "all"} | codes]),
      tick("advice", "With advice", query["advice"] != nil)
    ])
  end

  defp fix_list(_request, %{fixable: []}), do: nil

  defp fix_list(request, %{fixable: files, more_fixable: more}) do
    section("fixes", "Can be fixed here", [
      tag(
        :ul,
        [class: "fixes"],
        for {path, count} <- files do
          href = Layout.path(request, ["diagnostics", "fix"], path: path)
          file = without_paths(path, book(request))
          text = "#{Parts.count(count, "fix", "fixes")} of #{file}"
          tag(:li, [], tag(:a, [href: href], text))
        end
      ),
      if(more > 0,
        do: tag(:p, [], "and #{Parts.count(more, "more file", "more files")}")
      )
    ])
  end

  defp item(request, one) do
    tag(:li, [class: "diagnostic"], [
      tag(:p, [], [
        Parts.badge(to_string(one.severity), kind(one.severity)),
        " ",
        if(one.entry, do: [entry(request, one.entry), " "]),
        tag(:code, [class: "place", title: one.path], position(request, one))
      ]),
      tag(:p, [], Parts.sentence(one.message)),
      excerpt(one),
      if(one.hint, do: tag(:p, [class: "hint"], Parts.sentence(one.hint))),
      meaning(one.code)
    ])
  end

  # Below its source, as pages are named.
  defp position(request, one) do
    path = without_paths(one.path, book(request))

    [path || one.entry || "the book", one.line, one.column]
    |> Enum.reject(&is_nil/1)
    |> Enum.join(":")
  end

  defp excerpt(%{text: nil}), do: nil

  defp excerpt(%{text: text} = one) do
    {line, caret} = Diagnostic.excerpt(text, one.column || 1)
    tag(:pre, [class: "excerpt", tabindex: "0"], [line, "\n", if(one.column, do: caret)])
  end

  defp meaning(code) do
    case Diagnostic.explain(code) do
      :error ->
        tag(:p, [], tag(:code, [], Atom.to_string(code)))

      {:ok, {problem, solution}} ->
        tag(:details, [], [
          tag(:summary, [], tag(:code, [], Atom.to_string(code))),
          tag(:p, [], Parts.sentence(problem)),
          tag(:p, [], Parts.sentence(solution))
        ])
    end
  end

  defp kind(:error), do: :bad
  defp kind(:warning), do: :warn
  defp kind(:info), do: :info
end
