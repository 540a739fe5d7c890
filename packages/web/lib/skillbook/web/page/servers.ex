defmodule Skillbook.Web.Page.Servers do
  @moduledoc false
  # The tools, prompts and skills that MCP servers offer, with their texts, for operators who
  # approve them.
  #
  # A form has the digest of the text that was shown, so a server that changes its offer meanwhile
  # gets no approval for it.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Book
  alias Skillbook.MCP.Client
  alias Skillbook.Support.External
  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.Web.Page.{Layout, Parts}

  @page_size 100
  @max_description 300
  # Characters of a text in a page.
  @max_text 200_000

  @common "The server is common to all tenants, so an operator of one tenant cannot decide " <>
            "about it."

  @doc "All offers."
  def index(request, _values) do
    for_operators(request, fn ->
      offers = offers(request)
      {page, pages, shown} = page_of(request, offers, @page_size)
      data = %{total: length(offers), page: page, pages: pages, offers: shown}
      reply(request, data, :accounts, :servers, "Servers", fn -> content(request, data) end)
    end)
  end

  @doc "One offer with its text, or with one of its files."
  def show(request, _values) do
    for_operators(request, fn ->
      with_offer(request, field(request, "name"), &show(request, &1, nil))
    end)
  end

  @doc "Approves or refuses an offer as it was shown, or takes the approval back."
  def decide(request, _values) do
    for_operators(request, fn ->
      case Request.form(request) do
        {:ok, %{"name" => name, "digest" => digest, "decision" => decision}}
        when is_binary(name) and decision in ["approve", "revoke"] ->
          with_offer(request, name, fn offer ->
            if decides?(request, offer),
              do: decide(request, offer, digest, decision),
              else: Layout.failed(request, 403, @common)
          end)

        _other ->
          Layout.failed(request, 400, "The form could not be read.")
      end
    end)
  end

  defp decide(request, %{digest: digest} = offer, digest, decision) do
    by = [by: Caller.by(request.caller)]

    decided =
      if decision == "approve",
        do: Client.approve(book(request), offer.server, [{offer.name, digest}], by),
        else: Client.revoke(book(request), offer.server, [offer.name], by)

    case decided do
      {:ok, _names} -> Response.redirect(303, Layout.path(request, ["servers"]))
      {:error, error} -> show(request, offer, Exception.message(error))
    end
  end

  defp decide(request, offer, _shown, _decision),
    do: show(request, offer, "The server has changed it since: read it again")

  # Those of the servers of the caller's tenants.
  defp offers(request) do
    labels =
      for source <- sources(request),
          Caller.reads?(request.caller, source.tenant),
          do: source.name

    Enum.filter(Client.offers(book(request)), &(&1.server in labels))
  end

  defp sources(request),
    do: for(%{kind: :mcp} = source <- Book.fetch!(book(request)).sources, do: source)

  # An approval of a common server's offer is one for all tenants.
  defp decides?(request, offer) do
    Enum.any?(
      sources(request),
      &(&1.name == offer.server and Caller.writes?(request.caller, &1.tenant))
    )
  end

  defp with_offer(request, name, fun) do
    case Enum.find(offers(request), &(&1.name == name)) do
      nil -> Layout.not_found(request)
      offer -> fun.(offer)
    end
  end

  defp show(request, offer, problem) do
    file = if offer.kind == :skill, do: chosen(request, offer)
    text = read(request, offer, file)
    data = Map.merge(offer, %{file: file, text: text(text), error: problem || failure(text)})
    problem = problem || failure(text)

    reply(request, data, :accounts, :servers, offer.name, fn -> offer(request, data) end,
      back: {"MCP servers", Layout.path(request, ["servers"])},
      errors: problem && Parts.failure(problem),
      status: if(problem, do: 409, else: 200)
    )
  end

  defp chosen(request, offer) do
    file = field(request, "file", 1_000)
    if file in offer.files, do: file, else: "SKILL.md"
  end

  defp read(request, offer, nil), do: Client.read(book(request), offer.name)
  defp read(request, offer, file), do: Client.read(book(request), offer.name, file)

  defp text({:ok, text}) do
    if String.valid?(text), do: String.slice(text, 0, @max_text), else: "(no text)"
  end

  defp text({:error, _error}), do: nil

  defp failure({:error, error}), do: Exception.message(error)
  defp failure(_text), do: nil

  defp content(request, %{offers: []}) do
    if Enum.any?(sources(request), &Caller.reads?(request.caller, &1.tenant)),
      do:
        Parts.empty(
          request,
          "No MCP server of this book offers anything now.",
          {"See problems", ["diagnostics"]}
        ),
      else:
        Parts.empty([
          "This book has no MCP servers. A source ",
          tag(:code, [], "{:mcp, url}"),
          " adds one, on the command line ",
          tag(:code, [], "--mcp LABEL=URL"),
          "."
        ])
  end

  defp content(request, data) do
    [
      Parts.table(
        "Tools and skills, which are used only if they are approved as they are now",
        ["Name", "Status", "Kind", "Server", "Description"],
        for one <- data.offers do
          [
            tag(:a, [href: Layout.path(request, ["servers", "offer"], name: one.name)], one.name),
            status(one.status),
            to_string(one.kind),
            one.server,
            External.line(one.description, @max_description)
          ]
        end
      ),
      Parts.pages(request, ["servers"], %{}, data.page, data.pages)
    ]
  end

  defp offer(request, data) do
    [
      Parts.facts([
        {"Status", status(data.status)},
        {"Last decision", decided(data)},
        {"Kind", to_string(data.kind)},
        {"Server", data.server},
        {"Digest", tag(:code, [], data.digest)}
      ]),
      files(request, data),
      if(data.text,
        do:
          section("text", "Text, as the server wrote it", [
            if(data.file, do: tag(:p, [class: "help"], data.file)),
            tag(:pre, [class: "result", tabindex: "0"], data.text)
          ])
      ),
      decision(request, data)
    ]
  end

  defp decided(%{decided_by: nil}), do: nil
  defp decided(data), do: ["by ", data.decided_by, ", ", Parts.time(data.decided_at)]

  defp files(_request, %{files: files}) when length(files) < 2, do: nil

  defp files(request, data) do
    section(
      "files",
      "Files",
      tag(
        :ul,
        [],
        for file <- data.files do
          query = [name: data.name, file: file]
          href = Layout.path(request, ["servers", "offer"], query)
          tag(:li, [], tag(:a, [href: href, aria_current: file == data.file && "true"], file))
        end
      )
    )
  end

  # Nothing is approved that could not be shown.
  defp decision(_request, %{text: nil, status: status}) when status != :approved, do: nil

  defp decision(request, data) do
    if decides?(request, data),
      do: decision_form(request, data),
      else: tag(:p, [class: "help"], @common)
  end

  defp decision_form(request, data) do
    Parts.form(request, ["servers", "offer"], [
      tag(:input, type: "hidden", name: "name", value: data.name),
      tag(:input, type: "hidden", name: "digest", value: data.digest),
      if(data.status != :approved,
        do: button("approve", "Approve it as it is now", "primary")
      ),
      if(data.status in [:new, :changed], do: button("revoke", "Refuse it", "quiet")),
      if(data.status == :approved, do: button("revoke", "Take the approval back", "danger"))
    ])
  end

  defp button(decision, text, class),
    do: tag(:button, [type: "submit", name: "decision", value: decision, class: class], text)

  defp status(:approved), do: Parts.badge("approved", :good)
  defp status(:refused), do: Parts.badge("refused")
  defp status(:new), do: Parts.badge("never approved", :warn)
  defp status(:changed), do: Parts.badge("changed since the last decision", :bad)
end
