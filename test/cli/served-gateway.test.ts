import { afterEach, expect, test } from 'vitest'
import { FILE_ONLY_OPTIONS } from '../../src/cli/file-only-options.ts'
import { readServeSettings } from '../../src/cli/serve-settings.ts'
import { servedGateway } from '../../src/cli/served-gateway.ts'
import type { Gateway } from '../../src/gateway/gateway.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import { type StandInVendor, standInVendor } from '../routing/support/stand-in-vendor.ts'

let gateway: Gateway | undefined
let stand: StandInVendor | undefined

afterEach(async () => {
  await gateway?.close()
  await stand?.close()
  gateway = undefined
  stand = undefined
})

const CALLER = { accountId: 'a', keyId: 'k', tier: 'paid' } as const
const BODY = { model: 'our-chat', messages: [{ role: 'user' as const, content: 'hi' }] }

/** The gateway that a configuration file with these further options asks for. */
async function serve(further: unknown): Promise<Gateway> {
  stand ??= await standInVendor()
  const models = [{ id: 'our-chat', kind: 'chat', vendor: 'own' }]
  const settings = readServeSettings({ SIGNALBOX_BILLING: 'off' }, { models } as never)
  const vendor = openaiCompatible({ id: 'own', baseURL: stand.baseURL, apiKey: 'key', models: models as never })
  gateway = servedGateway(settings, [{ vendor, state: 'configured' }], FILE_ONLY_OPTIONS.parse(further), {
    store: memoryStore(),
  })
  return gateway
}

test('a response cache, as data', async () => {
  const { client, cache } = await serve({ cache: { rules: [{ endpoints: ['chat'], sampling: 'any' }] } })
  for (let count = 0; count < 3; count++) await client(CALLER).chat.completions.create(BODY)

  expect(cache.stats()).toMatchObject({ hits: 2, misses: 1 })
  expect(stand!.calls).toHaveLength(1)
})

test('a bound of requests in progress, as data', async () => {
  const { client } = await serve({ overload: { maxInFlight: 1 } })
  stand!.answer = () => ({ delayMs: 200 })
  const first = client(CALLER).chat.completions.create(BODY)
  await expect.poll(() => stand!.calls.length).toBe(1)

  await expect(client(CALLER).chat.completions.create(BODY)).rejects.toMatchObject({ code: 'overloaded' })
  expect((await first).choices).toHaveLength(1)
})

test('reports an option that the gateway rejects by its name in the file', async () => {
  await expect(serve({ cache: { rules: [{ endpoints: ['poems'] }] } })).rejects.toThrow(
    /^cache\.rules\[0\]\.endpoints: "poems" must be one of chat/,
  )
})
