import { expect, test, vi } from 'vitest'
import { serve } from '../../src/cli/serve.ts'
import { SqliteStoreError } from '../../src/stores/sqlite/sqlite-store.ts'

vi.mock('../../src/stores/sqlite/sqlite-engine.ts', () => ({
  openWithEngine: async () => {
    throw new SqliteStoreError('engine_missing', 'this Node has no SQLite: install @photostructure/sqlite')
  },
}))

const start = (environment: Record<string, string>, useStandIns: boolean) =>
  serve({ environment: { PORT: '0', ...environment }, useStandIns, print: () => undefined, version: '0.0.0' })

test('a machine without SQLite gets no memory store unasked: serve says what to install or set', async () => {
  await expect(start({}, false)).rejects.toThrow(
    'SIGNALBOX_STORE: sqlite:signalbox.db cannot be used: this Node has no SQLite: install @photostructure/sqlite; ' +
      'or set SIGNALBOX_STORE=memory: to keep nothing',
  )
})

test.each([
  [{ SIGNALBOX_STORE: 'memory:' }, false],
  [{}, true],
])('a machine without SQLite serves with %j, sandbox %s', async (environment, useStandIns) => {
  const running = await start(environment, useStandIns)

  const health = await fetch(`${running.url}/healthz`)

  expect(health.status).toBe(200)
  await running.close()
})
