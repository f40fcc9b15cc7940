/** Names under which secrets usually lie. A name only: the contents are not looked at. */

const NAMES = new RegExp(
  `^(${[
    String.raw`\.env(\..+)?`,
    String.raw`.+\.env`,
    String.raw`.+\.(pem|key|p12|pfx|jks|keystore|ppk|kdbx|ovpn|asc|gpg)`,
    `id_(rsa|dsa|ecdsa|ed25519)(_sk)?`,
    String.raw`\.(netrc|pgpass|my\.cnf|npmrc|pypirc|git-credentials|htpasswd|dockercfg|vault-token|boto|s3cfg)`,
    `_netrc`,
    String.raw`credentials(\..+)?`,
    String.raw`client_secrets?(\..+)?`,
    String.raw`secrets?\.(json|ya?ml|toml|txt|properties|tfvars)`,
    String.raw`service[-_]account.*\.json`,
    String.raw`.*\.tfstate(\.backup)?`,
    String.raw`master\.key`,
    String.raw`wp-config\.php`,
  ].join('|')})$`,
  'i',
)

/** Made to be shared. */
const HARMLESS = /\.(example|sample|template|dist|pub)$/i

/** Whether a path (bytes) looks like a file that should not leave the machine. */
export function looksSecret(path: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1)
  if (HARMLESS.test(name)) return false
  return NAMES.test(name) || /(^|\/)\.(docker\/config\.json|kube\/config)$/.test(path)
}
