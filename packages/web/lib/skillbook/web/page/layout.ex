defmodule Skillbook.Web.Page.Layout do
  @moduledoc false
  # The frame of every page: head, the rooms, the choice of the profile to see the book as, and
  # the places where the script announces changes.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3, html: 1]

  alias Skillbook.Book
  alias Skillbook.Web.{Caller, Html, Request, Response}
  alias Skillbook.Web.Page.{Assets, Attention}

  @book "M3 3h4.5v10H3ZM7.5 3h3v10h-3ZM10.6 3.6l2.3-.5 1.9 9.6-2.3.5Z"
  # The rooms: an id, the text, the path, and the path of the icon in 16 by 16 units.
  @rooms [
    {:home, "Home", [], "M2.5 7.5 8 3l5.5 4.5V13H10V9.5H6V13H2.5Z"},
    {:skills, "Skills", ["skills"], @book},
    {:try, "Try", ["chat"], "M2.5 3h11v7.5H7.5L4.5 13v-2.5h-2ZM5 5.8h6M5 7.8h4"},
    {:activity, "Activity", ["runs"], "M1.5 8.5H4.5L6.5 3l3 10 2-4.5h3"},
    {:accounts, "Accounts", ["connections"], "M6 2.5v3M10 2.5v3M4 5.5h8V8a4 4 0 0 1-8 0ZM8 12v2"},
    {:health, "Health", ["diagnostics"],
     "M8 13.2 3.2 8.4a3 3 0 0 1 4.3-4.2L8 4.7l.5-.5a3 3 0 0 1 4.3 4.2Z"}
  ]

  @doc """
  A page with a title, which is its `h1`, and content.

  ## Options

    * `:status` - 200 by default
    * `:section` - the room that the navigation marks
    * `:actions` - content beside the title, such as links to its actions
    * `:back` - `{text, path}` of the page above
    * `:head` - content of the document's head
    * `:attention` - the things that need the reader, if they are read already; `nil` leaves out
      the counts of the rooms
    * `:errors` - content of `Skillbook.Web.Page.Parts.errors/1`, above the rest
  """
  @spec page(Request.t(), String.t(), Html.content(), keyword()) :: Response.t()
  def page(%Request{} = request, title, content, options \\ []) do
    head = [
      tag(:meta, name: "events", content: path(request, ["events"])),
      # Not deferred: it sets the theme before anything is drawn.
      tag(:script, src: Assets.path(request, "app.js")),
      options[:head]
    ]

    body = [
      tag(:a, [class: "skip", href: "#main"], "Skip to the content"),
      header(request, options),
      tag(:main, [id: "main", tabindex: "-1"], [
        seen_as_notice(request),
        heading(title, options),
        options[:errors],
        content
      ]),
      tools(request),
      tag(:p, id: "status", class: "hidden", role: "status", aria_live: "polite"),
      tag(:p, id: "connection", class: "connection", role: "status", hidden: true)
    ]

    title = [if(options[:errors], do: "Error: "), title]
    document(request, Keyword.get(options, :status, 200), title, head, body)
  end

  @doc """
  A page that leads to another address at once; `text` is that of its link. After a redirect from
  another website a browser sends no strict cookie, but it does with the request of this page.
  """
  @spec forward(Request.t(), String.t(), String.t(), Html.content(), Html.content()) ::
          Response.t()
  def forward(request, title, address, text, content \\ nil) do
    refresh = tag(:meta, http_equiv: "refresh", content: "0;url=" <> address)
    plain(request, 200, title, [content, tag(:p, [], tag(:a, [href: address], text))], refresh)
  end

  @doc "A page without navigation, for requests whose caller is not known. `head` is added to it."
  @spec plain(Request.t(), 200..599, String.t(), Html.content(), Html.content()) :: Response.t()
  def plain(request, status, title, content, head \\ nil) do
    body = [
      tag(:main, [id: "main", class: "alone"], [
        tag(:p, [class: "brand"], "Skillbook"),
        tag(:div, [class: "heading"], tag(:h1, [], title)),
        content
      ])
    ]

    document(request, status, [if(status >= 400, do: "Error: "), title], head, body)
  end

  # `head` is added to the head of all documents.
  defp document(request, status, title, head, body) do
    head = [
      tag(:meta, charset: "utf-8"),
      tag(:meta, name: "viewport", content: "width=device-width, initial-scale=1"),
      tag(:meta, name: "color-scheme", content: "light dark"),
      tag(:title, [], [title, " · Skillbook"]),
      tag(:link, rel: "icon", href: Assets.path(request, "icon.svg")),
      tag(:link, rel: "stylesheet", href: Assets.path(request, "app.css")),
      head
    ]

    html = tag(:html, [lang: "en"], [tag(:head, [], head), tag(:body, [], body)])
    Response.html(status, ["<!doctype html>\n", html(html), "\n"])
  end

  defp heading(title, options) do
    tag(:div, [class: "heading"], [
      tag(:div, [], [
        with {text, path} <- options[:back] do
          tag(:p, [class: "back"], tag(:a, [href: path], text))
        end,
        tag(:h1, [], title)
      ]),
      options[:actions] && tag(:div, [class: "actions"], options[:actions])
    ])
  end

  defp header(request, options) do
    found = Keyword.get_lazy(options, :attention, fn -> Attention.read(request) end)
    counts = Attention.counts(found)
    rooms = for room <- @rooms, do: room(request, room, options[:section], counts)

    tag(:header, [class: "side"], [
      tag(:p, [class: "brand"], [icon(@book), "Skillbook"]),
      # The ids of live regions differ.
      tag(:nav, [id: "rooms", aria_label: "Rooms", data_live: ["approvals", "diagnostics"]], [
        tag(:ul, [], rooms)
      ])
    ])
  end

  defp room(request, {id, text, segments, icon}, section, counts) do
    current = if id == section, do: "page"
    {count, meaning} = counts[id] || {0, nil}

    tag(
      :li,
      [],
      tag(:a, [href: path(request, segments), aria_current: current], [
        icon(icon),
        tag(:span, [], text),
        if(count > 0,
          do: [
            tag(:span, [class: "attention", aria_hidden: "true"], shown_count(count)),
            tag(:span, [class: "hidden"], [", ", meaning])
          ]
        )
      ])
    )
  end

  defp shown_count(count) when count > 99, do: "99+"
  defp shown_count(count), do: count

  defp icon(path) do
    tag(
      :svg,
      [class: "icon", viewBox: "0 0 16 16", aria_hidden: "true"],
      tag(:path, [d: path], "")
    )
  end

  # Below the rooms, and on narrow screens below the page.
  defp tools(request) do
    tag(:footer, [class: "tools"], [
      tenant(request),
      seen_as(request),
      tag(
        :button,
        [type: "button", class: "theme", data_theme_button: true, hidden: true],
        "Theme: system"
      ),
      log_out(request)
    ])
  end

  defp log_out(%Request{caller: %{via: :session}} = request) do
    tag(:form, [method: "post", action: Request.path(request, ["logout"])], [
      csrf(request),
      tag(:button, [type: "submit", class: "quiet"], "Sign out")
    ])
  end

  defp log_out(_request), do: nil

  # Whose things the page shows.
  defp tenant(%Request{caller: %{profile: %{tenant: :all}}}),
    do: tag(:span, [class: "help"], "All tenants")

  defp tenant(%Request{caller: %{profile: %{tenant: tenant}}}) when tenant != nil,
    do: tag(:span, [class: "help"], ["Tenant ", tag(:strong, [], tenant)])

  defp tenant(_request), do: nil

  # The choice of a profile, for operators.
  defp seen_as(%Request{caller: caller} = request) when caller != nil do
    seen_as = as(request)

    if caller.operator? or seen_as do
      query = request |> Request.query() |> Map.drop(["as", "cursor"])

      tag(:form, [method: "get", class: "seen-as", action: Request.path(request, request.path)], [
        for(
          {name, value} <- query,
          is_binary(value),
          do: tag(:input, type: "hidden", name: name, value: value)
        ),
        tag(:label, [for: "as"], "Seen as"),
        profiles(caller, seen_as),
        tag(:button, [type: "submit", class: "quiet"], "Show")
      ])
    end
  end

  defp seen_as(_request), do: nil

  defp profiles(caller, seen_as) do
    case Book.fetch!(caller.view.book) do
      %{fetch_profile: nil} ->
        tag(:select, [id: "as", name: "as"], [
          tag(:option, [value: ""], "yourself"),
          for id <- Caller.profiles(caller) do
            tag(:option, [value: id, selected: id == seen_as], id)
          end
        ])

      _function ->
        tag(:input, id: "as", name: "as", value: seen_as, placeholder: "a profile's id", size: 12)
    end
  end

  defp seen_as_notice(request) do
    with id when id != nil <- as(request) do
      query = request |> Request.query() |> Map.drop(["as", "cursor"])

      tag(:div, [class: "notice seen", role: "note"], [
        "You see the book as the profile ",
        tag(:strong, [], id),
        ". Nothing can be changed in this view. ",
        tag(:a, [href: Request.path(request, request.path, query)], "See it as yourself")
      ])
    end
  end

  @doc "The id of the profile that an operator sees the book as, or nil."
  @spec as(Request.t()) :: String.t() | nil
  def as(%Request{query: query} = request) do
    # Each link of a page asks. A key may be percent-encoded.
    with true <- String.contains?(query, ["as=", "%"]),
         %{"as" => id} when is_binary(id) and id != "" <- Request.query(request) do
      id
    else
      _other -> nil
    end
  end

  @doc "Whether the caller may write here: an operator that sees the book as another one may not."
  @spec writes?(Request.t()) :: boolean()
  def writes?(request), do: as(request) == nil

  @doc "A link below the base, which keeps the profile that the book is seen as."
  @spec path(Request.t(), [String.t()], Enumerable.t()) :: String.t()
  def path(%Request{} = request, segments, query \\ []) do
    case as(request) do
      nil -> Request.path(request, segments, query)
      id -> Request.path(request, segments, Enum.to_list(query) ++ [{"as", id}])
    end
  end

  @doc "The hidden field that every form with the method POST needs."
  @spec csrf(Request.t()) :: Html.content()
  def csrf(%Request{caller: %{csrf: csrf}}) when is_binary(csrf),
    do: tag(:input, type: "hidden", name: "_csrf", value: csrf)

  def csrf(_request), do: nil

  @doc "The answer for an address or an entry that does not exist or is hidden: always the same."
  @spec not_found(Request.t()) :: Response.t()
  def not_found(request),
    do: failed(request, 404, "There is nothing here, or you may not see it.")

  @doc "An answer that says why a request failed."
  @spec failed(Request.t(), 400..599, String.t()) :: Response.t()
  def failed(request, status, text) do
    if request.caller == nil or Request.wants_json?(request) do
      Response.error(request, status, text)
    else
      request = %{request | path: [], query: as_query(request)}

      page(
        request,
        title(status),
        [
          tag(:p, [], text),
          tag(:p, [], tag(:a, [href: path(request, ["skills"])], "All skills"))
        ],
        status: status,
        # A database may have failed, and pages of hidden and of missing entries are the same.
        attention: nil
      )
    end
  end

  # The address is not repeated, so pages of hidden and of missing entries are the same.
  defp as_query(request) do
    case {as(request), request.caller} do
      {id, %{operator?: false}} when id != nil -> URI.encode_query(as: id)
      _other -> ""
    end
  end

  defp title(403), do: "Not allowed"
  defp title(404), do: "Not found"
  defp title(405), do: "Not possible"
  defp title(409), do: "Changed meanwhile"
  defp title(413), do: "Too large"
  defp title(_status), do: "Not possible"
end
