import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Credential, CredentialProvider } from '../../src/core/credential.ts'
import { googleDefaultCredentials, googleWorkloadIdentity } from '../../src/credentials/index.ts'
import { listen } from '../support/listen.ts'

interface Asked {
  readonly path: string
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

const NOW_MS = Date.UTC(2026, 10, 22)
const AUDIENCE = '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/cluster'
const ACCOUNT = 'robot@our-project.iam.gserviceaccount.com'

let folder: string
let origin: string
let asked: Asked[]
let answers: Record<string, { readonly status?: number; readonly body: unknown }>
let close: () => Promise<void>

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'federation-'))
  asked = []
  answers = {
    '/sts': { body: { access_token: 'federated-token', expires_in: 1800, token_type: 'Bearer' } },
    '/account': { body: { accessToken: 'account-token', expireTime: '2026-11-22T01:00:00Z' } },
    '/token': { body: { access_token: 'user-token', expires_in: 3600 } },
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      const path = request.url ?? ''
      const call = { path, method: request.method ?? '', headers: request.headers }
      asked.push({ ...call, text: Buffer.concat(chunks).toString() })
      const { status = 200, body = 'nothing here' } = answers[path] ?? { status: 404 }
      response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))
    })
  })
  ;({ origin, close } = await listen(server))
})
afterEach(async () => {
  await close()
  rmSync(folder, { recursive: true })
})

const ask = async (provider: CredentialProvider): Promise<Credential> =>
  provider({ signal: new AbortController().signal, nowMs: NOW_MS })

const failureOf = (provider: CredentialProvider): Promise<string> =>
  ask(provider).then(
    () => 'no failure',
    (error: Error) => error.message,
  )

function fileOf(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

/** A configuration as `create-cred-config` writes it. */
function configuration(source: object, rest: object = {}): Record<string, unknown> {
  return {
    type: 'external_account',
    audience: AUDIENCE,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    token_url: `${origin}/sts`,
    credential_source: source,
    ...rest,
  }
}

describe('a federated workload', () => {
  test('exchanges the token of its file, which is read again each time', async () => {
    const file = fileOf('token', 'first-token\n')
    const provider = googleWorkloadIdentity({ configuration: JSON.stringify(configuration({ file })) })

    expect(await ask(provider)).toEqual({ token: 'federated-token', expiresAtMs: NOW_MS + 1_800_000 })
    fileOf('token', 'second-token')
    await ask(provider)

    const forms = asked.map(({ text }) => Object.fromEntries(new URLSearchParams(text)))
    expect(forms[0]).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      audience: AUDIENCE,
      scope: 'https://www.googleapis.com/auth/cloud-platform',
      subject_token: 'first-token',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    })
    expect(forms[1]?.['subject_token']).toBe('second-token')
    expect(provider.slot).toBe(`google ${AUDIENCE}`)
  })

  test('reads a member of JSON, from a file and from a URL with headers', async () => {
    const format = { type: 'json', subject_token_field_name: 'access_token' }
    const file = fileOf('token.json', '{"access_token":"from-the-file"}')
    await ask(googleWorkloadIdentity({ configuration: configuration({ file, format }) }))
    answers['/identity?audience=x'] = { body: { access_token: 'from-the-url' } }
    const source = { url: `${origin}/identity?audience=x`, headers: { Metadata: 'True' }, format }
    await ask(googleWorkloadIdentity({ configuration: configuration(source) }))

    const tokens = asked
      .filter(({ path }) => path === '/sts')
      .map(({ text }) => new URLSearchParams(text).get('subject_token'))
    expect(tokens).toEqual(['from-the-file', 'from-the-url'])
    expect(asked.find(({ path }) => path.startsWith('/identity'))).toMatchObject({
      method: 'GET',
      headers: { metadata: 'True' },
    })
  })

  test('becomes the service account that the configuration names, for as long as it says', async () => {
    const file = fileOf('token', 'own-token')
    const named = configuration(
      { file },
      {
        service_account_impersonation_url: `${origin}/account`,
        service_account_impersonation: { token_lifetime_seconds: 600 },
      },
    )
    const provider = googleWorkloadIdentity({ configuration: named, scope: 'https://example.org/scope' })

    expect(await ask(provider)).toEqual({ token: 'account-token', expiresAtMs: NOW_MS + 600_000 })
    expect(new URLSearchParams(asked[0]?.text).get('scope')).toBe('https://www.googleapis.com/auth/cloud-platform')
    expect(asked[1]).toMatchObject({
      path: '/account',
      method: 'POST',
      headers: { authorization: 'Bearer federated-token', 'content-type': 'application/json' },
    })
    expect(JSON.parse(asked[1]!.text)).toEqual({ scope: ['https://example.org/scope'], lifetime: '600s' })
  })

  test('names the project that pays in a workforce, or authenticates as a client', async () => {
    const file = fileOf('token', 'own-token')
    const workforce = { workforce_pool_user_project: 'billing-project' }
    await ask(googleWorkloadIdentity({ configuration: configuration({ file }, workforce) }))
    const client = { ...workforce, client_id: 'id', client_secret: 'secret' }
    await ask(googleWorkloadIdentity({ configuration: configuration({ file }, client) }))

    expect(new URLSearchParams(asked[0]?.text).get('options')).toBe('{"userProject":"billing-project"}')
    expect(new URLSearchParams(asked[1]?.text).get('options')).toBeNull()
    expect(asked[1]?.headers.authorization).toBe(`Basic ${Buffer.from('id:secret').toString('base64')}`)
  })
})

describe('the default credentials', () => {
  const found = (content: object): CredentialProvider =>
    googleDefaultCredentials({
      environment: { GOOGLE_APPLICATION_CREDENTIALS: fileOf('adc.json', JSON.stringify(content)) },
    })

  test('may be a federation', async () => {
    expect(await ask(found(configuration({ file: fileOf('token', 'own-token') })))).toMatchObject({
      token: 'federated-token',
    })
  })

  test('may be a user who impersonates a service account', async () => {
    const user = { type: 'authorized_user', client_id: 'c', client_secret: 's', refresh_token: 'r' }
    const content = {
      type: 'impersonated_service_account',
      service_account_impersonation_url: `${origin}/account`,
      source_credentials: { ...user, token_uri: `${origin}/token` },
    }

    expect(await ask(found(content))).toEqual({ token: 'account-token', expiresAtMs: NOW_MS + 3_600_000 })
    expect(asked.map(({ path }) => path)).toEqual(['/token', '/account'])
    expect(await failureOf(found({ ...content, source_credentials: content }))).toContain('are not supported')
    expect(JSON.parse(asked[1]!.text)).not.toHaveProperty('delegates')
  })

  test('may impersonate it by way of other accounts', async () => {
    const delegates = ['projects/-/serviceAccounts/between@our-project.iam.gserviceaccount.com']
    const content = {
      ...{ type: 'impersonated_service_account', service_account_impersonation_url: `${origin}/account`, delegates },
      source_credentials: configuration({ file: fileOf('token', 'own-token') }),
    }

    expect(await ask(found(content))).toMatchObject({ token: 'account-token' })
    expect(JSON.parse(asked[1]!.text)).toMatchObject({ delegates, lifetime: '3600s' })
  })
})

describe('what cannot be used', () => {
  const failing = (source: object, rest: object = {}): Promise<string> =>
    failureOf(googleWorkloadIdentity({ configuration: configuration(source, rest) }))

  test('names the file, server or member to correct, and repeats no token', async () => {
    const file = fileOf('token', 'eyJhbGciOiJub25lIn0.canary-token.x')
    const format = { type: 'json', subject_token_field_name: 'token' }

    expect(await failing({ file: join(folder, 'none') })).toMatch(
      /^credential_source of googleWorkloadIdentity.*none.*ENOENT/,
    )
    expect(await failing({ file, format })).toMatch(/its output contains no token; check its format/)
    expect(await failing({ file: fileOf('empty', '') })).toMatch(/check its format/)
    expect(await failing({ url: `${origin}/nowhere` })).toMatch(/127\.0\.0\.1:\d+ returned no token: 404/)
    expect(await failing({ environment_id: 'aws1' })).toMatch(/only file and url are supported.*google-auth-library/)
    expect(await failing({ executable: { command: '/bin/true' } })).toMatch(/only file and url/)
    expect(await failing({ file }, { audience: '' })).toMatch(/audience is missing.*create-cred-config/)

    answers['/sts'] = {
      status: 400,
      body: { error: 'invalid_grant', error_description: `bad ${'eyJhbGciOiJub25lIn0.canary-token.x'}` },
    }
    const refused = await failing({ file })
    expect(refused).toMatch(/check the provider of the pool.*400 invalid_grant: bad \[redacted\]/)
    expect(refused).not.toContain('canary')

    answers['/sts'] = { body: { access_token: 'federated-token', expires_in: 1800 } }
    answers['/serviceAccounts/'] = { body: {} }
    const url = `${origin}/v1/projects/-/serviceAccounts/${ACCOUNT}:generateAccessToken`
    answers[url.slice(origin.length)] = { status: 403, body: { error: { status: 'PERMISSION_DENIED', message: 'no' } } }
    expect(await failing({ file }, { service_account_impersonation_url: url })).toMatch(
      /no token of robot@our-project.*Service Account Token Creator.*403 PERMISSION_DENIED: no/,
    )
  })

  test('is rejected immediately if it is not a configuration of a federation', () => {
    expect(() => googleWorkloadIdentity({ configuration: 'canary {' })).toThrow(/^googleWorkloadIdentity.*not the JSON/)
    expect(() => googleWorkloadIdentity({ configuration: { type: 'service_account' } })).toThrow(
      /of the type "service_account", not external_account/,
    )
  })
})
