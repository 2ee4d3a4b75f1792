import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { prometheus } from '../../src/metrics/index.ts'
import { exposition, formatFor } from '../../src/metrics/metrics-handler.ts'
import { leftOut } from '../support/real-servers.ts'
import { chatBody, type StartedGateway, startGateway } from '../support/start-gateway.ts'

/** Undefined when promtool is there. */
function missingPromtool(): string | undefined {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'pipe' })
    return undefined
  } catch {
    return leftOut('no promtool (Debian: prometheus)')
  }
}

const root = join(import.meta.dirname, '../..')
const metrics = prometheus({ accountLabel: true })
let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ observe: [metrics] })
})
afterAll(() => started.close())

describe.skipIf(missingPromtool() !== undefined)('promtool', () => {
  test('finds no fault in the metrics of a gateway', async () => {
    for (const text of ['hello', '[[fault:status=400]] hello'])
      for (const stream of [false, true])
        await (await started.post('/v1/chat/completions', chatBody('chat-relayed', text, { stream }))).text()
    const input = await exposition(metrics, formatFor(undefined))

    expect(input).toContain('signalbox_requests_total{')
    expect(promtool(['check', 'metrics'], input)).toBe('')
  })

  test('finds no fault in the rules', () => {
    expect(promtool(['check', 'rules', 'docs/monitoring/signalbox.rules.yml'])).toContain('SUCCESS: 16 rules found')
  })

  test('raises the alerts when it should, and not before', () => {
    const files = ['test/metrics/signalbox.rules.test.yml', 'test/metrics/spend.rules.test.yml']

    expect(promtool(['test', 'rules', ...files]).match(/SUCCESS/g)).toHaveLength(files.length)
  })
})

/** Returns the output of promtool. Throws with its message if it finds a fault. */
function promtool(command: readonly string[], input = ''): string {
  return execFileSync('promtool', command, { cwd: root, input, encoding: 'utf8', stdio: 'pipe' })
}
