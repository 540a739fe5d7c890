defmodule Skillbook.Test.OddCertificates do
  @moduledoc false
  # Certificates of a server that a client must refuse, each for another reason. All are signed by
  # an authority that the client trusts, unless that is the reason.

  require Record

  @hrl "public_key/include/public_key.hrl"

  for {name, record} <- [
        tbs: :OTPTBSCertificate,
        validity: :Validity,
        extension: :Extension,
        signature_algorithm: :SignatureAlgorithm,
        public_key_info: :OTPSubjectPublicKeyInfo,
        public_key_algorithm: :PublicKeyAlgorithm,
        attribute: :AttributeTypeAndValue,
        basic_constraints: :BasicConstraints,
        name_constraints: :NameConstraints,
        subtree: :GeneralSubtree,
        ec_private_key: :ECPrivateKey,
        rsa_private_key: :RSAPrivateKey
      ],
      do: Record.defrecordp(name, record, Record.extract(record, from_lib: @hrl))

  @ed25519 {1, 3, 101, 112}
  @rsa {1, 2, 840, 113_549, 1, 1, 1}
  @sha1_rsa {1, 2, 840, 113_549, 1, 1, 5}
  @sha256_rsa {1, 2, 840, 113_549, 1, 1, 11}

  @alternative_name {2, 5, 29, 17}
  @constraints {2, 5, 29, 19}
  @extended_usage {2, 5, 29, 37}
  @name_constraints {2, 5, 29, 30}
  @server_auth {1, 3, 6, 1, 5, 5, 7, 3, 1}
  @client_auth {1, 3, 6, 1, 5, 5, 7, 3, 2}

  @doc """
  For each kind a map: `:options` for `:ssl.listen/2`, and `:authority`, the path of the file of
  authorities. The host is `localhost`.
  """
  def make(kind, folder) do
    {chain, key, root} = chain(kind)
    path = Path.join(folder, "#{kind}.pem")
    File.write!(path, :public_key.pem_encode([{:Certificate, root, :not_encrypted}]))
    %{options: [cert: chain, key: encoded(key)] ++ versions(kind), authority: path}
  end

  @doc "The kinds, with the good one first."
  def kinds do
    ~w(good self_signed expired not_yet_valid wrong_host address_for_name name_as_common_name
      wildcard zero_byte constrained missing_intermediate critical_extension sha1 rsa_1024
      long_chain huge_chain client_only authority_as_server signed_by_server path_length tls_1_1)a
  end

  defp versions(:tls_1_1), do: [versions: [:"tlsv1.1"]]
  defp versions(_kind), do: []

  # {certificates of the server, its key, the trusted authority}
  defp chain(kind) when kind in [:sha1, :rsa_1024] do
    root_key = rsa(2048)
    root = issue("root", root_key, {"root", root_key}, [authority_extension()])
    key = if kind == :sha1, do: key(), else: rsa(1024)
    options = if kind == :sha1, do: [algorithm: @sha1_rsa], else: []
    middle = issue("middle", key, {"root", root_key}, [authority_extension()], options)
    server_key = key()

    {[issue("server", server_key, {"middle", key}, server_extensions()), middle], server_key,
     root}
  end

  defp chain(:self_signed) do
    {root, _root_key} = authority("root")
    key = key()
    {[issue("server", key, {"server", key}, server_extensions())], key, root}
  end

  defp chain(:missing_intermediate) do
    {root, root_key} = authority("root")
    {_middle, middle_key} = authority("middle", {"root", root_key})
    key = key()
    {[issue("server", key, {"middle", middle_key}, server_extensions())], key, root}
  end

  defp chain(:signed_by_server) do
    {root, root_key} = authority("root")
    other_key = key()
    other = issue("other", other_key, {"root", root_key}, server_extensions())
    key = key()
    {[issue("server", key, {"other", other_key}, server_extensions()), other], key, root}
  end

  defp chain(:path_length) do
    {root, root_key} = authority("root")
    first_key = key()
    first = issue("first", first_key, {"root", root_key}, [authority_extension(0)])
    {second, second_key} = authority("second", {"first", first_key})
    key = key()

    {[issue("server", key, {"second", second_key}, server_extensions()), second, first], key,
     root}
  end

  defp chain(:long_chain) do
    {root, root_key} = authority("root")

    {issuer, chain} =
      Enum.reduce(1..60, {{"root", root_key}, []}, fn number, {issuer, chain} ->
        {certificate, key} = authority("ca#{number}", issuer)
        {{"ca#{number}", key}, [certificate | chain]}
      end)

    key = key()
    {[issue("server", key, issuer, server_extensions()) | chain], key, root}
  end

  defp chain(:huge_chain) do
    {chain, key, root} = chain(:good)
    {chain ++ List.duplicate(root, 3_000), key, root}
  end

  defp chain(:constrained) do
    root_key = key()
    only = subtree(base: {:dNSName, 'example.org'}, minimum: 0)
    constraints = name_constraints(permittedSubtrees: [only], excludedSubtrees: :asn1_NOVALUE)
    limits = extension(extnID: @name_constraints, critical: true, extnValue: constraints)
    root = issue("root", root_key, {"root", root_key}, [authority_extension()])
    middle_key = key()
    middle = issue("middle", middle_key, {"root", root_key}, [authority_extension(), limits])
    key = key()
    {[issue("server", key, {"middle", middle_key}, server_extensions()), middle], key, root}
  end

  defp chain(kind) do
    {root, root_key} = authority("root")
    key = key()
    name = if kind == :name_as_common_name, do: "localhost", else: "server"
    {[issue(name, key, {"root", root_key}, extensions(kind), times(kind))], key, root}
  end

  defp extensions(:wrong_host), do: server_extensions(names: [{:dNSName, 'example.org'}])

  defp extensions(:address_for_name),
    do: server_extensions(names: [{:iPAddress, <<127, 0, 0, 1>>}])

  defp extensions(:name_as_common_name), do: tl(server_extensions())
  defp extensions(:wildcard), do: server_extensions(names: [{:dNSName, '*'}])

  defp extensions(:zero_byte),
    do: server_extensions(names: [{:dNSName, 'localhost' ++ [0] ++ '.example.org'}])

  defp extensions(:client_only), do: server_extensions(usage: [@client_auth])
  defp extensions(:authority_as_server), do: [authority_extension() | server_extensions()]

  defp extensions(:critical_extension) do
    odd = extension(extnID: {1, 3, 6, 1, 4, 1, 99_999, 1}, critical: true, extnValue: <<5, 0>>)
    server_extensions() ++ [odd]
  end

  defp extensions(_kind), do: server_extensions()

  defp times(:expired), do: [from: -20, to: -10]
  defp times(:not_yet_valid), do: [from: 10, to: 20]
  defp times(_kind), do: []

  # Certificates

  defp server_extensions(options \\ []) do
    [
      extension(
        extnID: @alternative_name,
        critical: false,
        extnValue: options[:names] || [{:dNSName, 'localhost'}]
      ),
      extension(
        extnID: @extended_usage,
        critical: false,
        extnValue: options[:usage] || [@server_auth]
      )
    ]
  end

  defp authority_extension(length \\ :asn1_NOVALUE) do
    value = basic_constraints(cA: true, pathLenConstraint: length)
    extension(extnID: @constraints, critical: true, extnValue: value)
  end

  defp authority(name), do: authority(name, nil)

  defp authority(name, issuer) do
    key = key()
    {issue(name, key, issuer || {name, key}, [authority_extension()]), key}
  end

  defp rsa(bits), do: :public_key.generate_key({:rsa, bits, 65_537})
  defp key, do: :public_key.generate_key({:namedCurve, :ed25519})

  defp issue(name, key, {issuer, issuer_key}, extensions, options \\ []) do
    algorithm = options[:algorithm] || algorithm(issuer_key)

    certificate =
      tbs(
        version: :v3,
        serialNumber: System.unique_integer([:positive]),
        signature: signature(algorithm),
        issuer: subject(issuer),
        validity:
          validity(notBefore: time(options[:from] || -1), notAfter: time(options[:to] || 9)),
        subject: subject(name),
        subjectPublicKeyInfo: public(key),
        extensions: extensions
      )

    :public_key.pkix_sign(certificate, issuer_key)
  end

  defp algorithm(ec_private_key()), do: @ed25519
  defp algorithm(rsa_private_key()), do: @sha256_rsa

  defp signature(@ed25519),
    do: signature_algorithm(algorithm: @ed25519, parameters: :asn1_NOVALUE)

  defp signature(oid), do: signature_algorithm(algorithm: oid, parameters: :NULL)

  defp public(ec_private_key(publicKey: point)) do
    algorithm = public_key_algorithm(algorithm: @ed25519, parameters: :asn1_NOVALUE)
    public_key_info(algorithm: algorithm, subjectPublicKey: {:ECPoint, point})
  end

  defp public(rsa_private_key(modulus: modulus, publicExponent: exponent)) do
    algorithm = public_key_algorithm(algorithm: @rsa, parameters: :NULL)
    public_key_info(algorithm: algorithm, subjectPublicKey: {:RSAPublicKey, modulus, exponent})
  end

  defp subject(name),
    do: {:rdnSequence, [[attribute(type: {2, 5, 4, 3}, value: {:utf8String, name})]]}

  # So many days from today.
  defp time(days) do
    date = Date.utc_today() |> Date.add(days) |> Calendar.strftime("%y%m%d")
    {:utcTime, String.to_charlist(date <> "000000Z")}
  end

  defp encoded(ec_private_key() = key),
    do: {:ECPrivateKey, :public_key.der_encode(:ECPrivateKey, key)}

  defp encoded(rsa_private_key() = key),
    do: {:RSAPrivateKey, :public_key.der_encode(:RSAPrivateKey, key)}
end
