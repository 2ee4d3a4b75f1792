import { type LookupAddress, lookup, promises } from 'node:dns'
import { readFileSync } from 'node:fs'
import { isIP, type LookupFunction } from 'node:net'
import { promisify } from 'node:util'
import { type Clock, systemClock } from '../core/clock.ts'
import { RecentMap } from '../core/maps.ts'
import { isPublicAddress } from './egress.ts'

/** Maximum wait for the addresses of a name. */
const TIMEOUT_MS = 5_000
/** Each server of the system is queried up to `tries` times, and `timeout` is the wait before the first repetition. */
const QUERY = { timeout: 1_500, tries: 2 }
/** Resolved names are used for this long, whatever their records say. */
const CACHE_MS = 10_000
const MAX_CACHED = 1_000
/** Maximum number of names that are queried at the same time, in the process and for one owner. */
const MAX_PENDING = 512
export const MAX_PENDING_PER_OWNER = 32

const HOSTS_FILE =
  process.platform === 'win32' ? `${process.env['SystemRoot']}\\System32\\drivers\\etc\\hosts` : '/etc/hosts'

/** Options of {@link NameResolver}. */
interface NameResolverOptions {
  /** Whether names may have private addresses. Such names are also looked up like those of vendors. Default `false`. */
  readonly allowPrivate?: boolean
  /** Addresses of DNS servers, with a port if it is not 53. Default: those of the system. */
  readonly servers?: readonly string[]
  readonly clock?: Clock
}

/**
 * Resolves host names that callers chose. It sends its own DNS queries: `dns.lookup` runs on Node's four shared threads, so a
 * few names that never resolve would delay all connections to vendors. The system's hosts file is read once.
 */
export class NameResolver {
  readonly #resolver = new promises.Resolver(QUERY)
  readonly #allowPrivate: boolean
  readonly #clock: Clock
  readonly #cache = new RecentMap<readonly LookupAddress[]>(MAX_CACHED)
  readonly #pending = new Map<string, Promise<readonly LookupAddress[]>>()
  readonly #pendingByOwner = new Map<string, number>()
  #hosts: ReadonlyMap<string, readonly LookupAddress[]> | undefined

  constructor({ allowPrivate = false, servers, clock = systemClock }: NameResolverOptions = {}) {
    this.#allowPrivate = allowPrivate
    this.#clock = clock
    if (servers !== undefined) this.#resolver.setServers(servers)
  }

  /**
   * Returns the addresses of a host, at least one. An address resolves to itself.
   * @param owner Owner of the name, such as an account id. The number of pending names per owner is limited.
   * @throws Error if there are none within 5 seconds, if one of them is private, or if too many names are pending.
   */
  async resolve(host: string, owner = ''): Promise<readonly LookupAddress[]> {
    const name = host.replace(/^\[|\]$/g, '').toLowerCase()
    const family = isIP(name)
    const addresses = family === 0 ? await this.#addressesOf(name, owner) : [{ address: name, family }]
    if (this.#allowPrivate || addresses.every(({ address }) => isPublicAddress(address))) return addresses
    throw failure(`${name} resolves to a private address`)
  }

  /** Resolves the host of a connection that is being opened; for `net.connect`. */
  readonly lookup: LookupFunction = (host, { family, all }, callback) => {
    this.resolve(host).then(
      (found) => {
        const wanted = found.filter((address) => (family !== 4 && family !== 6 ? true : address.family === family))
        const [first] = wanted
        if (first === undefined) callback(failure(`${host} has no IPv${family} address`, 'ENOTFOUND'), [])
        else if (all === true) callback(null, wanted)
        else callback(null, first.address, first.family)
      },
      (error) => callback(error, []),
    )
  }

  /** Ends all queries, which otherwise keep the process alive for a few seconds. */
  close(): void {
    this.#resolver.cancel()
  }

  #addressesOf(name: string, owner: string): Promise<readonly LookupAddress[]> | readonly LookupAddress[] {
    this.#hosts ??= hostsFile()
    const known = this.#hosts.get(name) ?? this.#cache.get(name, this.#clock.now()) ?? this.#pending.get(name)
    if (known !== undefined) return known
    const ofOwner = this.#pendingByOwner.get(owner) ?? 0
    if (this.#pending.size >= MAX_PENDING || ofOwner >= MAX_PENDING_PER_OWNER)
      throw failure(`too many host names are being resolved, so ${name} was not`, 'EBUSY')
    this.#pendingByOwner.set(owner, ofOwner + 1)
    const resolving = this.#query(name, () => {
      this.#pending.delete(name)
      const left = this.#pendingByOwner.get(owner)! - 1
      if (left > 0) this.#pendingByOwner.set(owner, left)
      else this.#pendingByOwner.delete(owner)
    })
    this.#pending.set(name, resolving)
    return resolving
  }

  /** @param onEnd Called when the queries have ended, which may be after the time limit. */
  async #query(name: string, onEnd: () => void): Promise<readonly LookupAddress[]> {
    const found: LookupAddress[] = []
    const add = (family: 4 | 6) => (addresses: readonly string[]) =>
      void found.push(...addresses.map((address) => ({ address, family })))
    const queries = Promise.allSettled([
      this.#resolver.resolve4(name).then(add(4)),
      this.#resolver.resolve6(name).then(add(6)),
    ]).finally(onEnd)
    const code = await new Promise<string>((resolve) => {
      const timer = this.#clock.schedule(TIMEOUT_MS, () => resolve('ETIMEOUT'))
      queries.then((results) => {
        timer.cancel()
        resolve(results.find((result) => result.status === 'rejected')?.reason.code ?? 'ENOTFOUND')
      })
    })
    const addresses = [...found]
    if (addresses.length > 0) {
      this.#cache.set(name, addresses, this.#clock.now(), CACHE_MS)
      return addresses
    }
    if (this.#allowPrivate && code !== 'ETIMEOUT') return await promisify(lookup)(name, { all: true })
    throw failure(`${name} cannot be resolved (${code})`, code)
  }
}

/** Creates an error with a code of `node:dns`, or `EBUSY` if too many names are being resolved. */
function failure(message: string, code?: string): NodeJS.ErrnoException {
  return Object.assign(new Error(message), code === undefined ? {} : { code })
}

/** Reads addresses by name. Empty if the system has no hosts file. */
function hostsFile(): ReadonlyMap<string, readonly LookupAddress[]> {
  const hosts = new Map<string, LookupAddress[]>()
  let text = ''
  try {
    text = readFileSync(HOSTS_FILE, 'utf8')
  } catch {
    return hosts
  }
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    const family = isIP(address)
    if (family === 0) continue
    for (const name of names.map((each) => each.toLowerCase()))
      hosts.set(name, [...(hosts.get(name) ?? []), { address, family }])
  }
  return hosts
}
