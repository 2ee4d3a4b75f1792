import { SettingError } from './setting-values.ts'
import type { Environment } from './terminal.ts'

/**
 * The proxy for an origin by `HTTPS_PROXY` and `NO_PROXY`, in capitals or not; undefined: none. Only https origins have one.
 * `NO_PROXY` is a list of hosts, each with the hosts below it and perhaps a port, or `*`.
 * @throws SettingError for a proxy that is no http(s) URL; it is not repeated, because it may hold a password.
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
