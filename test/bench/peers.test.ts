import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { missingPackages } from '../../bench/peer-packages.mjs'
import { canReadProcesses } from '../../bench/process-tree.mjs'
import { freePort, startProgram } from '../../bench/program-process.mjs'
import { requestFor } from '../../bench/request-for.mjs'
import { within } from '../../bench/within.mjs'

const request = 'POST /v1/embeddings HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n{}'
const scenario = { request: () => request }

test('a request goes below the mount of a proxy, and carries the headers that it asks for', () => {
  const plain = requestFor({ scenario, proxy: {}, running: {} })
  const dressed = requestFor({ scenario, proxy: { basePath: '/ai' }, running: { requestHeaders: ['x-vendor: one'] } })

  expect(plain).toBe(request)
  expect(String(dressed)).toBe('POST /ai/v1/embeddings HTTP/1.1\r\nx-vendor: one\r\nhost: 127.0.0.1\r\n\r\n{}')
})

test('a package counts as installed only in the version that is named, an override too', () => {
  const manifest = { dependencies: { one: '1.0.0', two: '2.0.0' }, overrides: { three: '3.0.0' } }
  const installed = new Map([
    ['one', '1.0.0'],
    ['two', '2.0.1'],
  ])

  expect(missingPackages(manifest, (name: string) => installed.get(name))).toEqual(['two@2.0.0', 'three@3.0.0'])
})

test('an answer that does not come is a fault, and names what was waited for', async () => {
  await expect(within(1, 'the peer', new Promise(() => {}))).rejects.toThrow('the peer: nothing after 0.001 s')
  await expect(within(10_000, 'the peer', Promise.resolve(7))).resolves.toBe(7)
})

test.runIf(canReadProcesses)(
  'a program is ready when it listens, and gone with its children when it is stopped',
  async () => {
    const port = await freePort()
    const server = `require('node:http').createServer((q, s) => s.end('ok')).listen(${port}, '127.0.0.1')`
    const parent = `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(server)}]); setInterval(() => {}, 1e6)`

    const running = await startProgram([process.execPath, '-e', parent], { core: 0, port })
    onTestFinished(running.stop)

    expect(await running.cpuMicroseconds()).toBeGreaterThan(0)
    expect((await running.memoryBytes()).resident).toBeGreaterThan(1_000_000)
    await running.stop()
    const [error] = await once(connect({ port, host: '127.0.0.1' }), 'error')
    // Reset, when the system is still about to close the port of a program that was killed.
    expect(['ECONNREFUSED', 'ECONNRESET']).toContain((error as NodeJS.ErrnoException).code)
  },
)

test('a program that ends at once is a fault with what it wrote', async () => {
  const port = await freePort()
  const command = [process.execPath, '-e', 'console.error("bad configuration"); process.exit(1)']

  await expect(startProgram(command, { core: 0, port })).rejects.toThrow(
    /does not accept connections.*bad configuration/,
  )
})

test('a free port is one that can be listened on', async () => {
  const server = createServer().listen(await freePort(), '127.0.0.1')
  onTestFinished(() => void server.close())

  await once(server, 'listening')
  expect((server.address() as AddressInfo).port).toBeGreaterThan(0)
})
