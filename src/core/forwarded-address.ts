import { BlockList, isIP } from 'node:net'
import type { GatewayRequest } from './exchange.ts'

/** Returns the address of the client of a request, or `undefined` if it is unknown. */
export type ClientAddress = (
  request: Pick<GatewayRequest, 'method' | 'path' | 'header' | 'remoteAddress'>,
) => string | undefined

/**
 * Creates a `clientAddress` for servers behind proxies. Proxies append to `X-Forwarded-For` the address that called them, so the client
 * is the last address in it that is not a trusted proxy. The header of any other sender is ignored.
 * @param proxies Addresses and CIDR blocks of the trusted proxies: `['10.0.0.0/8', '::1']`.
 * @throws TypeError if an entry is neither an address nor a block.
 */
export function forwardedAddress(proxies: readonly string[]): ClientAddress {
  const trusted = new BlockList()
  for (const entry of proxies) {
    const [address = '', bits, ...rest] = entry.split('/')
    const family = isIP(address)
    const longest = family === 4 ? 32 : 128
    const prefix = bits === undefined ? longest : Number(bits)
    if (family === 0 || rest.length > 0 || !/^\d*$/.test(bits ?? '') || bits === '' || prefix > longest)
      throw new TypeError(`proxies: ${JSON.stringify(entry)} is neither an IP address nor a block such as 10.0.0.0/8`)
    trusted.addSubnet(address, prefix, family === 4 ? 'ipv4' : 'ipv6')
  }
  return (request) => {
    let client = request.remoteAddress
    const hops = (request.header('x-forwarded-for') ?? '').split(',')
    while (client !== undefined && trusted.check(client, isIP(client) === 4 ? 'ipv4' : 'ipv6')) {
      const hop = withoutPort(hops.pop()?.trim() ?? '')
      if (isIP(hop) === 0) break
      client = hop
    }
    return client
  }
}

/** Some proxies append the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  return /^\[(.*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
}
