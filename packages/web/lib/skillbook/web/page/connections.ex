defmodule Skillbook.Web.Page.Connections do
  @moduledoc false
  # The connections to accounts at other vendors, and their ends. Operators see those of all
  # profiles, others their own. Above them are the accounts that the caller's own profile signs in
  # to, by `Skillbook.Web.Page.SignIn`.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.{Book, ConnectionError, Connections, OptionError, Part}
  alias Skillbook.Web.{Caller, Request, Response}
  alias Skillbook.Web.Page.{Layout, Parts, Rights, SignIn}

  @page_size 100
  # Names in a notice.
  @max_names 10

  @common "The connection belongs to no tenant, so an operator of one tenant cannot end it."

  @doc "The connections."
  def index(request, %{web: web}), do: show(request, web)

  @doc "Ends a connection."
  def disconnect(request, %{account: account, web: web}) do
    with {:ok, fields} <- Request.form(request),
         profile = fields["profile"] || "",
         {:ok, connections} <- list(request, profile: profile),
         %{} = found <- find(connections, account, profile),
         true <- ends?(request, found) do
      case Connections.disconnect(book(request), found.account, profile: profile) do
        {:ok, %{revoked: true}} ->
          Response.redirect(303, Layout.path(request, ["connections"]))

        {:ok, %{reason: reason}} ->
          show(request, web,
            problem: "The tokens are deleted, but the vendor did not withdraw them: #{reason}",
            help: "Withdraw the access in the settings of the vendor's account.",
            status: 502
          )

        {:error, error} ->
          show(request, web, problem: Exception.message(error), status: 502)
      end
    else
      :error -> Layout.failed(request, 400, "The form could not be read.")
      false -> Layout.failed(request, 403, @common)
      # No profile has such an id.
      {:error, %OptionError{}} -> Layout.not_found(request)
      {:error, error} -> {:error, error}
      nil -> Layout.not_found(request)
    end
  end

  # An operator of a tenant ends none that belongs to no tenant, except its own.
  defp ends?(request, one) do
    one.profile == Caller.view(request).profile.id or Caller.writes?(request.caller, one.tenant)
  end

  defp find(connections, account, profile) do
    Enum.find(
      connections,
      &(to_string(&1.account) == account and &1.profile == profile and &1.sign_in)
    )
  end

  # Those that the caller may see.
  defp list(%{caller: %{operator?: true, profile: profile}} = request, options),
    do: Connections.list(book(request), [tenant: profile.tenant] ++ options)

  defp list(request, options) do
    own = [profile: Caller.view(request).profile.id]
    Connections.list(book(request), Keyword.merge(options, own))
  end

  # Those after an account that is not there any more begin with the first.
  defp page(request) do
    last = field(request, "after", 600)
    place = if last != "", do: [after: last], else: []
    size = [limit: @page_size + 1]

    with {:error, %ConnectionError{kind: :account}} <- list(request, size ++ place),
         do: list(request, size)
  end

  defp next(shown) do
    last = List.last(shown)
    String.trim("#{last.account} #{last.profile}")
  end

  @doc """
  The page of the connections; with `:problem` and `:help`, the texts of a failure and of the way
  out of it, and its `:status`.
  """
  @spec show(Request.t(), Skillbook.Web.t(), keyword()) :: Response.t()
  def show(request, web, failure \\ []) do
    with {:ok, connections} <- page(request),
         {:ok, accounts} <- Connections.sign_ins(book(request), Caller.view(request).profile) do
      {shown, more} = Enum.split(connections, @page_size)

      data = %{
        profile: Caller.view(request).profile.id,
        accounts: Enum.map(accounts, &account(request, web, &1)),
        next: if(more != [], do: next(shown)),
        connections: Part.json(:connections, shown),
        error: failure[:problem]
      }

      reply(
        request,
        data,
        :accounts,
        :connections,
        "Accounts",
        fn -> content(request, %{data | connections: shown}) end,
        errors: failure[:problem] && notice(failure),
        status: failure[:status] || 200
      )
    else
      {:error, error} -> Layout.failed(request, 503, Exception.message(error))
    end
  end

  defp account(request, web, one) do
    {redirect, problem} =
      case SignIn.redirect(request, web, one.account) do
        {:ok, url} -> {url, nil}
        {:error, text} -> {nil, text}
      end

    connection =
      one.connection || %{status: nil, identity: nil, scopes: [], services: one.services}

    one
    |> Map.take([:account, :server, :commands, :missing])
    |> Map.merge(Map.take(connection, [:status, :identity, :scopes, :services]))
    |> Map.merge(%{redirect: redirect, problem: problem})
  end

  defp notice(failure) do
    tag(:div, [class: "notice bad", role: "alert", tabindex: "-1", data_focus: true], [
      tag(:p, [], Parts.sentence(failure[:problem])),
      failure[:help] && tag(:p, [], failure[:help])
    ])
  end

  defp content(request, data) do
    [
      connected(request, data.accounts),
      for(one <- data.accounts, do: part(request, one)),
      if(data.connections == [],
        do: Parts.empty(none(request)),
        else:
          Parts.table(
            "Connections",
            [
              "Account",
              "Profile",
              "Status",
              "Address",
              "Services",
              "Connected",
              "Renewed",
              "End"
            ],
            Enum.map(data.connections, &row(request, &1))
          )
      ),
      Parts.further(request, "connections", data.next, "Next"),
      if data.accounts != [] do
        tag(:p, [class: "help"], [
          "On the command line, ",
          tag(:code, [], "skillbook connect ACCOUNT"),
          " connects an account."
        ])
      end
    ]
  end

  # After a sign-in. The address may come from anywhere, so it only names the account.
  defp connected(request, accounts) do
    name = field(request, "connected", 200)

    with %{status: :connected} = one <- Enum.find(accounts, &(to_string(&1.account) == name)) do
      {kind, text} = granted(one)

      tag(:div, [class: "notice #{kind}", role: "status", tabindex: "-1", data_focus: true], [
        tag(:p, [], [tag(:strong, [], "#{name} is connected#{as(one)}. "), text])
      ])
    else
      _none -> nil
    end
  end

  defp granted(%{missing: []}), do: {"good", "Its commands can run."}

  defp granted(%{missing: missing}) do
    {names, more} = missing |> Enum.map(& &1.command) |> Enum.split(@max_names)
    more = if more == [], do: "", else: " and #{length(more)} more"

    {"warn",
     "These commands lack a scope: #{Enum.join(names, ", ")}#{more}. To allow it, tick " <>
       "them and press Allow more."}
  end

  defp as(%{identity: nil}), do: ""
  defp as(%{identity: identity}), do: " as #{identity}"

  # An account to sign in to.
  defp part(request, one) do
    section("account-#{one.account}", to_string(one.account), [
      Parts.facts([
        {"Status", status(one.status)},
        {"Address", one.identity},
        {"Server", one.server},
        {"Services", if(!one.server, do: Enum.map_join(one.services, ", ", &to_string/1))},
        {"Scopes", scopes(one.scopes), :wide},
        {"Redirect", one.redirect && tag(:code, [], one.redirect), :wide}
      ]),
      sign_in(request, one)
    ])
  end

  defp scopes([]), do: nil
  defp scopes(scopes), do: tag(:ul, [], for(scope <- scopes, do: tag(:li, [], code(scope))))

  defp code(text), do: tag(:code, [], text)

  defp sign_in(request, one) do
    case {Rights.check(request), one} do
      {_rights, %{server: nil, commands: []}} ->
        help("No command of this profile uses this account.")

      {_rights, %{server: nil, missing: []}} ->
        nil

      {{:error, text}, _one} ->
        help(text)

      {:ok, %{problem: text}} when text != nil ->
        help(text)

      {:ok, _one} ->
        form(request, one)
    end
  end

  defp help(text), do: tag(:p, [class: "help"], text)

  # The commands of a new connection are ticked; scopes are added to one by choice.
  defp form(request, one) do
    {button, ticked?} =
      case one.status do
        nil -> {"Connect", true}
        :revoked -> {"Connect again", true}
        :connected -> {if(one.server, do: "Connect again", else: "Allow more"), false}
      end

    Parts.form(request, ["connections", to_string(one.account), "connect"], [
      if(one.server, do: nil, else: commands(one, ticked?)),
      tag(:p, [], tag(:button, [type: "submit", class: "primary"], [button, " ", hidden(one)]))
    ])
  end

  defp commands(one, ticked?) do
    [
      tag(:fieldset, [], [
        tag(:legend, [], "Commands that need a scope"),
        for {%{command: command, scope: scope}, at} <- Enum.with_index(one.missing) do
          id = "#{one.account}-#{at}"
          box = [type: "checkbox", id: id, name: "for[]", value: command, checked: ticked?]
          label = [command, " ", tag(:span, [class: "help"], scope)]
          tag(:div, [class: "field check"], [tag(:input, box), tag(:label, [for: id], label)])
        end
      ]),
      help("The vendor must know the redirect address above.")
    ]
  end

  # Several accounts have the same button.
  defp hidden(one), do: tag(:span, [class: "hidden"], to_string(one.account))

  defp none(request) do
    if Connections.any?(Book.fetch!(book(request))),
      do: "No account is connected.",
      else: [
        "This book has no accounts. The option ",
        tag(:code, [], "connections:"),
        " adds them."
      ]
  end

  defp row(request, one) do
    [
      to_string(one.account),
      one.profile || "all that may use it",
      status(one.status),
      one.identity || "–",
      Enum.map_join(one.services, ", ", &to_string/1),
      Parts.time(one.connected_at) || "–",
      Parts.time(one.renewed_at) || "–",
      ending(request, one)
    ]
  end

  defp status(nil), do: Parts.badge("not connected")
  defp status(:connected), do: Parts.badge("connected", :good)
  defp status(:revoked), do: Parts.badge("withdrawn", :bad)

  # A secret of the application has no end here.
  defp ending(_request, %{sign_in: false}), do: "–"

  defp ending(request, one) do
    if Layout.writes?(request) and ends?(request, one) do
      Parts.form(request, ["connections", to_string(one.account)], [
        tag(:input, type: "hidden", name: "profile", value: one.profile),
        tag(:button, [type: "submit", class: "danger"], "Disconnect")
      ])
    else
      "–"
    end
  end
end
