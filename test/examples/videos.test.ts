import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { endOfExample } from './support/run-example.ts'

const folder = mkdtempSync(join(tmpdir(), 'signalbox-video-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the example video-polling', () => {
  test('submits a video, follows it to its end, and saves it', async () => {
    const file = join(folder, 'boat.mp4')

    const { code, output } = await endOfExample('video-polling', { VIDEO_FILE: file })

    expect(output).toMatch(/^task +task_/m)
    expect(output).toMatch(/^status +completed$/m)
    expect(readFileSync(file).subarray(4, 8).toString('latin1')).toBe('ftyp')
    expect(code).toBe(0)
  })

  test('fails with the answer of a gateway that does not take the video', async () => {
    const gateway = createServer((_request, response) => {
      response.writeHead(402, { 'content-type': 'application/json' }).end('{"error":{"message":"no money"}}')
    }).listen(0, '127.0.0.1')
    await once(gateway, 'listening')
    const { port } = gateway.address() as AddressInfo

    const { code, output } = await endOfExample('video-polling', { GATEWAY_URL: `http://127.0.0.1:${port}/v1` })
    gateway.close()

    expect(code).toBe(1)
    expect(output).toContain('402: {"error":{"message":"no money"}}')
  })
})

test('notifies the example video-webhook of the end of its own video', async () => {
  const { code, output } = await endOfExample('video-webhook', {})
  const id = /^task +(\S+)$/m.exec(output)?.[1]

  expect(output).toContain(`video.generation.completed ${id}`)
  expect(output).toMatch(/^video +http\S+$/m)
  expect(code).toBe(0)
})
