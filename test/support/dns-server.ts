import { createSocket } from 'node:dgram'

/** Answers of a {@link DnsServer}: addresses by name, `'silence'` for a query without any answer. Other names do not exist. */
export type DnsRecords = Readonly<Record<string, readonly string[] | 'silence'>>

/** A DNS server on loopback. */
export interface DnsServer {
  /** Host and port, for `setServers`. */
  readonly address: string
  /** Names of all queries for IPv4 addresses, in order of arrival. */
  readonly queried: readonly string[]
  records: DnsRecords
  close(): Promise<void>
}

const TYPE_A = 1

/** Starts a DNS server. The name `*` of the records answers for all names that are not listed. */
export async function startDnsServer(records: DnsRecords): Promise<DnsServer> {
  const socket = createSocket('udp4')
  const queried: string[] = []
  const server = { address: '', queried, records, close: () => new Promise<void>((done) => socket.close(done)) }
  socket.on('message', (query, { port, address }) => {
    const { name, type, end } = questionOf(query)
    if (type === TYPE_A) queried.push(name)
    const found = server.records[name] ?? server.records['*']
    if (found === 'silence') return
    socket.send(answerTo(query.subarray(0, end), type === TYPE_A ? found : found && []), port, address)
  })
  await new Promise<void>((done) => socket.bind(0, '127.0.0.1', done))
  server.address = `127.0.0.1:${socket.address().port}`
  return server
}

/** Reads the one question of a query (RFC 1035, section 4.1.2). */
function questionOf(query: Buffer): { readonly name: string; readonly type: number; readonly end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at]!; length !== 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

/** @param found Addresses, or `undefined` if there is no such name. */
function answerTo(question: Buffer, found: readonly string[] | undefined): Buffer {
  const head = Buffer.from(question)
  head.writeUInt16BE(found === undefined ? 0x8183 : 0x8180, 2)
  head.writeUInt16BE(found?.length ?? 0, 6)
  head.writeUInt32BE(0, 8)
  const answers = (found ?? []).map((address) =>
    Buffer.from([0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split('.').map(Number)]),
  )
  return Buffer.concat([head, ...answers])
}
