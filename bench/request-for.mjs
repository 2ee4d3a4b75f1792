import { Buffer } from 'node:buffer'
import { API_KEY, apiKeys } from './requests.mjs'

/**
 * A scenario's request for one proxy: below the path of its mount, and with the headers that it requires.
 * @param {{ scenario: object, proxy: object, running: object }} of `proxy.basePath`, such as `/ai`; `running.requestHeaders`,
 *   whole lines
 */
export function requestFor({ scenario, proxy, running }) {
  const request = scenario.request(proxy)
  const { basePath = '' } = proxy
  const { requestHeaders = [] } = running
  if (basePath === '' && requestHeaders.length === 0) return request
  const bytes = Buffer.from(request)
  const lineEnd = bytes.indexOf('\r\n')
  const line = bytes.latin1Slice(0, lineEnd).replace(' ', ` ${basePath}`)
  return Buffer.concat([Buffer.from([line, ...requestHeaders].join('\r\n')), bytes.subarray(lineEnd)])
}

/** The requests that connections send in turn: one, or one of each of `scenario.accounts` callers. */
export function requestsFor({ scenario, proxy, running }) {
  const request = requestFor({ scenario, proxy, running })
  const { accounts = 1 } = scenario
  return accounts === 1 ? [request] : apiKeys(accounts).map((key) => request.replace(API_KEY, key))
}
