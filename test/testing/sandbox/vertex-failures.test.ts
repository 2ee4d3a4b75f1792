import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/core/clock.ts'
import { googleDefaultCredentials, googleServiceAccount } from '../../../src/credentials/index.ts'
import { type Sandbox, sandboxVendors } from '../../../src/testing/index.ts'
import { anthropicVertex } from '../../../src/vendors/anthropic/anthropic.ts'
import { vertex } from '../../../src/vendors/gemini/gemini.ts'
import type { ApiKeys } from '../../../src/vendors/vendor.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const MODELS = ['flash', 'haiku'] as const
const HUNDRED_DOLLARS = 100_000_000_000n

/** Returns the machine's clock with an offset. */
function shiftedClock(): Clock & { shiftMs: number } {
  const clock = {
    shiftMs: 0,
    now: () => systemClock.now() + clock.shiftMs,
    schedule: systemClock.schedule,
  }
  return clock
}

let folder: string
let clock: ReturnType<typeof shiftedClock>
let sandbox: Sandbox
let origin: string
let started: StartedGateway

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vertex-'))
  clock = shiftedClock()
  sandbox = sandboxVendors({ clock })
  origin = (await sandbox.listen()).origin
})
afterEach(async () => {
  await started.close()
  await sandbox.close()
  rmSync(folder, { recursive: true })
})

interface Place {
  readonly project?: string
  readonly location?: string
  readonly clock?: Clock
  readonly baseURL?: string
}

async function start(apiKey: ApiKeys, { project = 'our-project', location = 'global', ...rest }: Place = {}) {
  const place = { project, location, apiKey, baseURL: rest.baseURL ?? origin }
  started = await startGateway({
    vendors: [vertex(place), anthropicVertex(place)],
    models: [
      { id: 'flash', kind: 'chat', vendor: 'vertex', upstream: 'gemini-2.5-flash' },
      { id: 'haiku', kind: 'chat', vendor: 'anthropic-vertex', upstream: 'claude-haiku-4-5@20251001' },
    ],
    prices: {
      currency: 'USD',
      prices: MODELS.flatMap((model) => [
        { model, meter: 'input_token' as const, amount: '3.00', per: 1_000_000 },
        { model, meter: 'output_token' as const, amount: '15.00', per: 1_000_000 },
      ]),
    },
    clock: rest.clock ?? clock,
  })
}

const ask = (model: string, rest = {}): Promise<Response> =>
  started.post('/v1/chat/completions', chatBody(model, 'Hello', rest))

/** Returns a key file of a service account with the token endpoint of the stand-in. */
function keyFile(): Record<string, string> {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return {
    type: 'service_account',
    client_email: 'gateway@our-project.iam.gserviceaccount.com',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    token_uri: `${origin}/token`,
  }
}

/** Returns the error that the operator got, which the caller must not see. */
async function toldAfter(model: string): Promise<string> {
  const answer = await ask(model)
  const text = await answer.text()
  expect(answer.status, text).toBe(503)
  expect(text).not.toMatch(/GOOGLE|gcloud|our-project|missing-/)
  expect(await started.account()).toEqual({ balance: HUNDRED_DOLLARS, held: 0n })
  const told = started.events.filter(
    (event) => event.type === 'vendor-account-problem' || event.type === 'credential-refresh-failed',
  )
  return told.map(({ message }) => message).join('\n')
}

describe.each(MODELS)('%s', (model) => {
  test.each<[string, Place, RegExp]>([
    [
      'a region without the model',
      { location: 'us-west9' },
      /set location \(GOOGLE_CLOUD_LOCATION\).*global.*us-west9/,
    ],
    [
      'a project that is not there',
      { project: 'missing-project' },
      /set project \(GOOGLE_CLOUD_PROJECT\).*missing-project/,
    ],
  ])('is not charged at %s, and the operator reads what to set', async (_what, place, told) => {
    await start(() => ({ token: 'any-token' }), place)

    expect(await toldAfter(model)).toMatch(told)
  })

  test('names the address to the operator if the host does not exist', async () => {
    await start(() => ({ token: 'any-token' }), { baseURL: 'https://us-moon1-aiplatform.googleapis.invalid' })

    expect(await toldAfter(model)).toMatch(/us-moon1-aiplatform\.googleapis\.invalid.*address, region or resource/)
  })

  test('retries once with stale credentials, and names their source', async () => {
    let given = 0
    await start(() => ({ token: `ya29.sandbox-until-0-${++given}` }))
    clock.shiftMs = 10_000

    expect(await toldAfter(model)).toMatch(/GOOGLE_APPLICATION_CREDENTIALS/)
  })

  test('names the command that renews a revoked user', async () => {
    const file = join(folder, 'user.json')
    const user = { type: 'authorized_user', client_id: 'c', client_secret: 's', refresh_token: 'revoked' }
    writeFileSync(file, JSON.stringify({ ...user, token_uri: `${origin}/token` }))
    await start(googleDefaultCredentials({ environment: { GOOGLE_APPLICATION_CREDENTIALS: file } }))

    expect(await toldAfter(model)).toMatch(/gcloud auth application-default login.*expired or revoked/)
  })

  test('names every way to set credentials if there are none', async () => {
    const environment = { HOME: folder, GCE_METADATA_HOST: '127.0.0.1:9' }
    await start(googleDefaultCredentials({ environment }))

    expect(await toldAfter(model)).toMatch(/set GOOGLE_APPLICATION_CREDENTIALS, run gcloud .* service account/)
  })

  test('names the clock if it is ten minutes wrong', async () => {
    const wrong = shiftedClock()
    wrong.shiftMs = 600_000
    await start(googleServiceAccount({ key: keyFile() }), { clock: wrong })

    expect(await toldAfter(model)).toMatch(/set the clock of this machine/)
  })

  test('goes on over the ends of tokens, with one new token for each', async () => {
    await start(googleServiceAccount({ key: keyFile() }))
    for (let hour = 0; hour < 3; hour++) {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => ask(model, { stream: index % 2 === 0 })),
      )
      for (const answer of answers) {
        expect(answer.status).toBe(200)
        await answer.text()
      }
      clock.shiftMs += 3_700_000
    }

    const calls = sandbox.requests.filter(({ operation }) => operation === 'chat')
    expect(calls).toHaveLength(60)
    expect(new Set(calls.map(({ headers }) => headers['authorization'])).size).toBe(3)
    expect(sandbox.requests.filter(({ operation }) => operation === 'token')).toHaveLength(3)
  })
})
