defmodule Skillbook.Connections.MicrosoftTest do
  use ExUnit.Case, async: true

  alias Skillbook.Connections
  alias Skillbook.Connections.Client.MicrosoftRules
  alias Skillbook.Connections.{Microsoft, Vendor}
  alias Skillbook.{ConnectionError, OptionError}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.Connections, as: Helper
  alias Skillbook.Test.Services

  describe "failures" do
    test "have the kinds of Microsoft's codes" do
      for {status, code, inner, kind, again} <- [
            {400, "BadRequest", nil, :invalid, :never},
            {400, "ErrorInvalidIdMalformed", nil, :not_found, :never},
            {401, "InvalidAuthenticationToken", nil, :unauthorized, :never},
            {403, "ErrorAccessDenied", nil, :forbidden, :never},
            {404, "ErrorItemNotFound", nil, :not_found, :never},
            {404, "MailboxNotEnabledForRESTAPI", nil, :forbidden, :never},
            {409, "nameAlreadyExists", nil, :conflict, :never},
            {412, "ErrorIrresolvableConflict", nil, :conflict, :never},
            {413, "RequestEntityTooLarge", nil, :too_large, :never},
            {423, "notAllowed", "resourceLocked", :conflict, :always},
            {429, "TooManyRequests", nil, :rate_limited, :always},
            {429, "UnknownError", nil, :rate_limited, :always},
            {503, "serviceNotAvailable", nil, :server, :idempotent},
            {503, "generalException", "activityLimitReached", :rate_limited, :always},
            {504, nil, nil, :server, :idempotent},
            {507, "insufficientStorage", nil, :quota, :never},
            {403, "accessDenied", "quotaLimitReached", :quota, :never},
            {509, "bandwidthLimitExceeded", nil, :rate_limited, :always}
          ] do
        error = %{"code" => code, "message" => "m", "innerError" => inner && %{"code" => inner}}
        json = %{"error" => error}
        failure = MicrosoftRules.failure(status, %{}, json, JSON.encode(json))
        assert {status, code, failure.kind, failure.again} == {status, code, kind, again}
        assert failure.code == code
      end

      for json <- [nil, %{}, %{"error" => "x"}, %{"error" => %{"code" => 7, "innerError" => []}}],
          do: assert(%{kind: :invalid, code: nil} = MicrosoftRules.failure(400, %{}, json, ""))
    end

    test "name the service, and only one host gets the token" do
      for {path, service} <- [
            {"/v1.0/me/messages", "Outlook"},
            {"/v1.0/me/calendarView", "Outlook Calendar"},
            {"/v1.0/me/events/1", "Outlook Calendar"},
            {"/v1.0/me/drive/root", "OneDrive"},
            {"/v1.0/$batch", "Microsoft Graph"}
          ],
          do: assert({path, MicrosoftRules.service(%URI{path: path})} == {path, service})

      for {host, allowed} <- [
            {"graph.microsoft.com", true},
            {"graph.microsoft.com.example.org", false},
            {"graph.microsoft.us", false},
            {"login.microsoftonline.com", false}
          ],
          do: assert({host, MicrosoftRules.host?(host)} == {host, allowed})
    end
  end

  describe "options" do
    test "have a client and a tenant" do
      for {options, expected} <- [
            {[client_id: "c"], :ok},
            {[client_id: "c", tenant: "contoso.onmicrosoft.com"], :ok},
            {[client_id: "c", tenant: "8eaef023-2b34-4da1-9baa-8bc8c9d6a490"], :ok},
            {[], "needs the option :client_id"},
            {[client_id: "c", tenant: "a/b"], "the id or a domain of an organization, or common"},
            {[client_id: "c", tenant: "a?b"], "the id or a domain of an organization, or common"},
            {[client_id: "c", tenant: ".."], "the id or a domain of an organization, or common"},
            {[client_id: "c", tenant: :common],
             "the id or a domain of an organization, or common"}
          ] do
        result = Connections.Config.read([microsoft: options], :book)

        case {result, expected} do
          {{:ok, _}, :ok} -> :ok
          {{:error, %OptionError{} = error}, text} -> assert Exception.message(error) =~ text
        end
      end
    end
  end

  describe "a sign-in" do
    setup do
      clients = [%{id: "web", secret: "s3cret", redirects: [Helper.redirect()]}]
      clients = clients ++ [%{id: "public", redirects: ["http://localhost"]}]
      %{world: Services.world(clients: clients, browser: %{user: "bob@example.com"})}
    end

    @mail ["Mail.Read", "Mail.ReadWrite"]

    defp book(world, options) do
      account = [vendor: :microsoft, url: world.url] ++ options
      Helper.book([microsoft: account], builtins: [:microsoft])
    end

    test "asks for the least scopes at the tenant, and keeps what was granted", %{world: world} do
      book =
        book(world, client_id: "web", client_secret: fn -> "s3cret" end, tenant: "contoso.com")

      {:ok, connection} = Helper.connect(book, :microsoft, for: ["email.search"])
      assert connection.identity == "bob@example.com"
      # Those of Graph without the beginning that Microsoft's answers have.
      assert connection.scopes == ["Mail.Read", "email", "openid", "profile"]
      [authorize, token] = Services.log(world)
      assert {authorize["tenant"], token["tenant"]} == {"contoso.com", "contoso.com"}
      assert authorize["params"]["scope"] == "openid profile email offline_access Mail.Read"
      assert authorize["params"]["prompt"] == "select_account"

      # More of them later, without the choice of an account.
      {:ok, connection} = Helper.connect(book, :microsoft, for: ["email.send"])
      assert "Mail.Send" in connection.scopes and "Mail.Read" in connection.scopes
      refute Map.has_key?(Enum.at(Services.log(world), 2)["params"], "prompt")
    end

    test "of a public client has no secret", %{world: world} do
      book = book(world, client_id: "public")
      redirect = "http://localhost:4567/back"
      {:ok, %{url: url}} = Connections.authorize(book, :microsoft, redirect: redirect)
      {302, location} = Services.open(url)
      %{query: query} = URI.parse(location)

      assert {:ok, %{status: :connected}} = Connections.complete(book, URI.decode_query(query))

      assert hd(Services.log(world))["tenant"] == "common"
    end

    test "is renewed with the latest token", %{world: world} do
      book = book(world, client_id: "web", client_secret: fn -> "s3cret" end)
      {:ok, _} = Helper.connect(book, :microsoft)
      account = Helper.mail(book)
      old = Helper.token(account, @mail)
      Services.advance(world, 7_200)
      Helper.expire(book)
      new = Helper.token(account, @mail)
      assert is_binary(new) and new != old
      Helper.expire(book)
      assert is_binary(Helper.token(account, @mail))

      asked =
        for %{"method" => "microsoft.token"} = entry <- Services.log(world),
            do: entry["params"]["grant_type"]

      assert asked == ["authorization_code", "refresh_token", "refresh_token"]

      assert {:error, %ConnectionError{kind: :scope}} = Helper.token(account, ["Files.Read"])

      assert {:ok, %{revoked: false, reason: "the vendor has no way to do it"}} =
               Connections.disconnect(book, :microsoft)
    end

    test "names the person by the mailbox, or by the name of the sign-in" do
      for {person, identity} <- [
            {%{name: "Bob", upn: "b@corp.example"}, "bob@example.com"},
            {%{name: "Bob", upn: "b@corp.example", mailbox: false}, "b@corp.example"},
            {%{name: "Bob", upn: "no address", mailbox: false}, nil}
          ] do
        world =
          Services.world(
            users: %{"bob@example.com" => person},
            clients: [%{id: "web", redirects: [Helper.redirect()]}]
          )

        {:ok, connection} = Helper.connect(book(world, client_id: "web"), :microsoft)
        assert {person, connection.identity} == {person, identity}
      end
    end
  end

  test "scopes of commands" do
    assert Microsoft.scopes("email.read") == ["Mail.Read", "Mail.ReadWrite"]
    assert Microsoft.scopes("hubspot.contacts") == []

    for {commands, scopes} <- [
          {["email.read"], ["Mail.Read"]},
          {["email.read", "email.draft"], ["Mail.ReadWrite"]},
          {["email.forward"], ["Mail.Read", "Mail.Send"]},
          {["email.forward", "email.label"], ["Mail.ReadWrite", "Mail.Send"]}
        ],
        do: assert({commands, Vendor.least(Microsoft, commands)} == {commands, scopes})

    for {granted, result} <- [
          {["Mail.Read", "Mail.Send"], true},
          {["Mail.Send", "Mail.ReadWrite"], true},
          {["Mail.Send"], false},
          {[], false}
        ],
        do:
          assert(
            {granted, Vendor.granted?(Microsoft.scopes("email.forward"), granted)} ==
              {granted, result}
          )
  end
end
