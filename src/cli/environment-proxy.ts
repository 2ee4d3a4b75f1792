import { SettingError } from './setting-values.ts'
import type { Environment } from './terminal.ts'

/**
 * Returns the proxy for an origin from `HTTPS_PROXY` and `NO_PROXY`, in capitals or not, or `undefined` if there is none. Only https
 * origins have a proxy. `NO_PROXY` is a list of hosts, each with its subdomains and optionally a port, or `*`.
 * @throws SettingError if the proxy is not an http(s) URL. The URL is not shown, because it may contain a password.
 */
export function environmentProxy(origin: string, environment: Environment): string | undefined {
  const name = environment['https_proxy'] === undefined ? 'HTTPS_PROXY' : 'https_proxy'
  const proxy = environment[name]?.trim()
  if (proxy === undefined || proxy === '') return undefined
  if (!/^https?:\/\/\S+$/i.test(proxy) || !URL.canParse(proxy))
    throw new SettingError(`${name}: is not an http or https URL such as http://proxy.example:3128`)
  const { protocol, hostname, port } = new URL(origin)
  if (protocol !== 'https:') return undefined
  const exceptions = (environment['no_proxy'] ?? environment['NO_PROXY'] ?? '').split(/[\s,]+/)
  return exceptions.some((exception) => covers(exception.toLowerCase(), hostname, port || '443')) ? undefined : proxy
}

function covers(exception: string, hostname: string, port: string): boolean {
  if (exception === '') return false
  if (exception === '*') return true
  const [, name = '', ownPort] = /^(.*?)(?::(\d+))?$/.exec(exception) ?? []
  if (ownPort !== undefined && ownPort !== port) return false
  const host = name.replace(/^\*?\./, '')
  return hostname === host || hostname.endsWith(`.${host}`)
}
