defmodule Skillbook.Connections.ConfigTest do
  use ExUnit.Case, async: true

  alias Skillbook.{Connections, Context, OptionError, View}
  alias Skillbook.Connections.{Account, Config}
  alias Skillbook.Test.Connections, as: Signed

  doctest Account
  doctest Skillbook.ConnectionError

  @secret "s3cret-of-a-test"

  defp secret, do: fn -> @secret end

  defp start(connections, more \\ []) do
    name = :"connections_#{System.unique_integer([:positive])}"

    start_supervised!(
      {Skillbook, [name: name, builtins: true, watch: false, connections: connections] ++ more},
      id: name
    )

    name
  end

  defp context(book, profile \\ "default", more \\ []) do
    profile = Skillbook.Book.profile(Skillbook.Book.fetch!(book), profile)
    command = Skillbook.Command.parse!("email.search --query tea")
    fields = [view: nil, profile: profile, entry: nil, command: command, book: book]
    struct!(Context, fields ++ [now: ~U[2026-03-01 08:00:00Z]] ++ more)
  end

  describe "the option :connections" do
    test "reads accounts in their order, with the vendor of their name" do
      assert {:ok, %Config{accounts: [crm, google], keys: [{:env, "KEY"}]}} =
               Config.read(
                 [
                   key: {:env, "KEY"},
                   crm: [vendor: :hubspot, token: {:env, "T"}, profiles: ["ann"]],
                   google: %{client_id: "a", client_secret: secret(), services: [:mail]}
                 ],
                 :book
               )

      assert %Account{book: :book, name: :crm, vendor: Connections.HubSpot} = crm
      assert {crm.profiles, crm.services} == {["ann"], [:hubspot]}
      assert {google.profiles, google.services} == {:all, [:mail]}
      assert google.options.client_id == "a"
    end

    test "may be empty, or a function" do
      assert Config.read([], :book) == {:ok, nil}

      assert {:ok, %Config{accounts: [_]}} =
               Config.read(fn -> [hubspot: [token: secret()]] end, :b)
    end

    @subject "the account :a of a book's :connections"
    @form "{:env, name}, or a function of no argument or of the profile's id"

    test "names an error and shows no secret" do
      imap = [vendor: :imap, host: "mail.example.com", username: "ann", password: secret()]

      for {options, message} <- [
            {@secret,
             "expected a keyword list of accounts for a book's :connections, got: :hidden"},
            {[a: @secret],
             "expected a keyword list or a map with atoms as keys for #{@subject}, got: :hidden"},
            {[a: [token: secret()]],
             "expected :google, :microsoft, :hubspot, :imap, :caldav or a module of " <>
               "Skillbook.Connections.Vendor as the option :vendor of #{@subject}, got: :a"},
            {[a: [vendor: :hubspot]], "#{@subject} needs the option :token"},
            {[a: [vendor: :hubspot, token: @secret]],
             "expected #{@form} as the option :token of #{@subject}, got: :hidden"},
            {[a: [vendor: :hubspot, token: {:env, ""}]],
             "expected #{@form} as the option :token of #{@subject}, got: :hidden"},
            {[a: [vendor: :hubspot, tokn: @secret]],
             "unknown option :tokn for #{@subject}, did you mean :token? The options are " <>
               ":vendor, :profiles, :services, :url, :http, :retries, :quota, :token"},
            {[key: @secret],
             "expected #{@form}, or a list of these as the option :key of a book's " <>
               ":connections, got: :hidden"},
            {[a: [vendor: :hubspot, token: secret(), profiles: "ann"]],
             "expected :all or a list of ids as the option :profiles of #{@subject}, " <>
               "got: \"ann\""},
            {[a: [vendor: :hubspot, token: secret(), services: [:mail]]],
             "expected services of this vendor (:hubspot) as the option :services of " <>
               "#{@subject}, got: [:mail]"},
            {[a: [vendor: :hubspot, token: secret(), url: "ftp://a"]],
             ~s(expected a URL such as "https://gateway.example.com" as the option :url of ) <>
               ~s(#{@subject}, got: "ftp://…")},
            {[a: Keyword.delete(imap, :host)], "#{@subject} needs the option :host"},
            {[a: [vendor: :hubspot, token: secret()], a: imap],
             "expected accounts with different names as the option :connections of a book, " <>
               "got: :a"}
          ] do
        assert {:error, %OptionError{} = error} =
                 Skillbook.start_link(name: :x, connections: options)

        assert Exception.message(error) == message
        refute inspect(error) =~ @secret
      end
    end

    test "keeps secrets out of the child specification, the book and its accounts" do
      options = [hubspot: [token: secret()]]

      refute inspect(Skillbook.child_spec(name: :x, connections: [hubspot: [token: @secret]])) =~
               @secret

      {:ok, config} = Config.read(options, :book)
      assert inspect(config) == "#Skillbook.Connections.Config<...>"

      assert inspect(hd(config.accounts)) ==
               "#Skillbook.Connections.Account<book: :book, name: :hubspot, vendor: " <>
                 "Skillbook.Connections.HubSpot, profile: nil, command: nil, ...>"
    end
  end

  describe "an account with a secret of the application" do
    test "is there for the profiles that may use it" do
      book =
        start(
          [
            crm: [vendor: :hubspot, token: secret(), profiles: ["ann"]],
            post: [
              vendor: :imap,
              host: "mail.example.com",
              username: "team@example.com",
              password: fn profile -> "of " <> profile end
            ]
          ],
          profiles: [[id: "ann"], [id: "bob"]]
        )

      assert Connections.services(book, "ann") == ["hubspot", "mail"]
      assert Connections.services(book, "bob") == ["mail"]

      assert {:ok, %Account{name: :crm} = crm} =
               Connections.account(context(book, "ann"), :hubspot)

      assert {:ok, token} = Connections.token(crm, [])
      assert token.() == @secret
      assert Connections.refused(crm, token) == :ok

      assert {:ok, post} = Connections.account(context(book, "bob", timeout: 5_000), :mail)
      assert post.identity == "team@example.com"
      assert Account.time_left(post) in 4_000..4_500
      assert {:ok, password} = Connections.token(post, [])
      assert password.() == "of bob"

      assert {:error, error} = Connections.account(context(book, "bob"), :hubspot)

      assert Exception.message(error) ==
               "the profile bob has no connection for hubspot: no account in the book's " <>
                 ":connections offers it to this profile; see `bin/skillbook connect --help`"
    end

    test "is used for a profile that acts for others only if all of them may" do
      book =
        start([hubspot: [token: secret(), profiles: ["ann", "bob"]]], profiles: [[id: "ann"]])

      context = context(book, "ann")

      for {others, has?} <- [
            {[], true},
            {["bob"], true},
            {["eve"], false},
            {["bob", "eve"], false}
          ] do
        context = put_in(context.profile.others, others)
        assert match?({:ok, _}, Connections.account(context, :hubspot)) == has?
      end
    end

    test "of a person is not used for a profile that acts for others" do
      for {account, service, has?} <- [
            {[vendor: :hubspot, token: secret()], :hubspot, true},
            {[vendor: :hubspot, token: {:env, "TOKEN"}], :hubspot, true},
            {[vendor: :hubspot, token: fn _profile -> "t" end], :hubspot, false},
            {[vendor: :google, service_account: secret(), subject: "team@example.com"], :mail,
             true},
            {[vendor: :google, service_account: secret(), subject: &(&1 <> "@example.com")],
             :mail, false},
            {[vendor: :google, service_account: fn _profile -> "{}" end], :mail, false}
          ] do
        book = start([one: account], profiles: [[id: "ann"]])
        assert {account, for_others?(book, service)} == {account, has?}
      end
    end

    test "that a person signed in to is not used for a profile that acts for others" do
      world = Signed.world()
      book = Signed.book([one: Signed.account(world)], profiles: [[id: "ann"]])
      {:ok, _} = Signed.connect(book, :one, profile: "ann", for: ["email.search"])
      refute for_others?(book, :mail)
    end

    # Whether a profile that has an account also has it while it acts for another one.
    defp for_others?(book, service) do
      alone = context(book, "ann")
      both = put_in(alone.profile.others, ["bob"])
      assert {:ok, _} = Connections.account(alone, service)
      assert Atom.to_string(service) in View.of(book, alone.profile).profile.services
      has? = match?({:ok, _}, Connections.account(both, service))

      # The view shows its commands or not, too.
      assert Atom.to_string(service) in View.of(book, both.profile).profile.services == has?
      has?
    end

    test "says why its secret cannot be read, without its value" do
      for {secret, reason} <- [
            {{:env, "SKILLBOOK_TEST_MISSING"},
             "the environment variable SKILLBOOK_TEST_MISSING is not set, or empty"},
            {fn -> nil end, "its function did not return text"},
            {fn -> "" end, "its function returned an empty text"},
            {fn -> <<255>> end, "its function returned bytes that are not UTF-8"},
            {fn -> String.duplicate("a", 65_537) end,
             "its function returned more than 65536 bytes"},
            {fn -> raise @secret end, "its function raised RuntimeError"},
            {fn -> throw(@secret) end, "its function ended with throw"},
            {fn -> exit(@secret) end, "its function ended with exit"}
          ] do
        book = start(hubspot: [token: secret])
        {:ok, account} = Connections.account(context(book), :hubspot)
        assert {:error, error} = Connections.token(account, [])
        assert error.kind == :secret

        assert Exception.message(error) ==
                 "the account hubspot cannot be used: the option :token: #{reason}"
      end
    end
  end
end
