import { createVerify, generateKeyPairSync } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CredentialProvider } from '../../src/core/credential.ts'
import { awsIdentity } from '../../src/credentials/aws.ts'
import { presign } from '../../src/credentials/aws-signature.ts'
import {
  awsBedrock,
  entraClientSecret,
  entraManagedIdentity,
  entraWorkloadIdentity,
  googleDefaultCredentials,
  googleMetadata,
  googleServiceAccount,
} from '../../src/credentials/index.ts'
import { listen } from '../support/listen.ts'

interface Asked {
  readonly method: string | undefined
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly form: Readonly<Record<string, string>>
}

const NOW_MS = Date.UTC(2026, 10, 22)
let folder: string
let origin: string
let asked: Asked[]
let answer: (call: Asked) => { readonly status?: number; readonly body: unknown }
let close: () => Promise<void>

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tokens-'))
  asked = []
  answer = () => ({ body: { access_token: `t${asked.length}`, expires_in: 3600 } })
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    request.on('end', () => {
      const form = Object.fromEntries(new URLSearchParams(text))
      const call = { method: request.method, url: request.url ?? '', headers: request.headers, form }
      asked.push(call)
      const { status = 200, body } = answer(call)
      response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))
    })
  })
  ;({ origin, close } = await listen(server))
})
afterEach(async () => {
  await close()
  rmSync(folder, { recursive: true })
})

const ask = async (provider: CredentialProvider, nowMs = NOW_MS) =>
  await provider({ signal: AbortSignal.timeout(10_000), nowMs })

const failureOf = async (provider: CredentialProvider): Promise<string> =>
  ((await ask(provider).catch((error: unknown) => error)) as Error).message

function fileOf(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

describe('Entra', () => {
  const app = { tenantId: 'ten', clientId: 'cli' }

  test('gives a token for a client secret', async () => {
    const provider = entraClientSecret({ ...app, clientSecret: 'secret-canary', authority: origin })
    expect(await ask(provider)).toEqual({ token: 't1', expiresAtMs: NOW_MS + 3_600_000 })
    expect(asked[0]).toMatchObject({
      method: 'POST',
      url: '/ten/oauth2/v2.0/token',
      form: {
        grant_type: 'client_credentials',
        client_id: 'cli',
        client_secret: 'secret-canary',
        scope: 'https://ai.azure.com/.default',
      },
    })
    expect(provider.slot).toBe('entra ten cli')
  })

  test('reads the settings from the environment, and the federated token again each time', async () => {
    const file = fileOf('token', 'first\n')
    const provider = entraWorkloadIdentity({
      environment: {
        AZURE_TENANT_ID: 'ten',
        AZURE_CLIENT_ID: 'cli',
        AZURE_FEDERATED_TOKEN_FILE: file,
        AZURE_AUTHORITY_HOST: `${origin}/`,
      },
    })
    await ask(provider)
    fileOf('token', 'second')
    await ask(provider)
    expect(asked.map(({ form }) => form['client_assertion'])).toEqual(['first', 'second'])
    expect(asked[0]?.form['client_assertion_type']).toBe('urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
  })

  test('asks the metadata server for a managed identity', async () => {
    answer = () => ({ body: { access_token: 'mi', expires_in: '86400' } })
    const provider = entraManagedIdentity({ clientId: 'user-1', metadataOrigin: origin, environment: {} })
    expect(await ask(provider)).toEqual({ token: 'mi', expiresAtMs: NOW_MS + 86_400_000 })
    const url = new URL(asked[0]!.url, origin)
    expect(url.pathname).toBe('/metadata/identity/oauth2/token')
    expect(Object.fromEntries(url.searchParams)).toEqual({
      'api-version': '2018-02-01',
      resource: 'https://ai.azure.com',
      client_id: 'user-1',
    })
    expect(asked[0]?.headers['metadata']).toBe('true')
  })

  test('asks the server of App Service where it names one', async () => {
    answer = () => ({ body: { access_token: 'as', expires_on: String(NOW_MS / 1000 + 600) } })
    const environment = { IDENTITY_ENDPOINT: `${origin}/msi/token`, IDENTITY_HEADER: 'h1' }
    const credential = await ask(entraManagedIdentity({ environment }))
    expect(credential).toEqual({ token: 'as', expiresAtMs: NOW_MS + 600_000 })
    expect(asked[0]?.headers['x-identity-header']).toBe('h1')
    expect(asked[0]?.url).toMatch(/^\/msi\/token\?api-version=2019-08-01&/)
  })

  test('takes an empty variable for one that is not set', async () => {
    answer = () => ({ body: { access_token: 'mi', expires_in: 60 } })
    const environment = { AZURE_AUTHORITY_HOST: '', IDENTITY_ENDPOINT: '', IDENTITY_HEADER: '', AZURE_CLIENT_ID: '' }
    const proxy = createServer().on('connect', (_request, socket: Duplex) => {
      socket.end('HTTP/1.1 403 No\r\nconnection: close\r\n\r\n')
    })
    const listening = await listen(proxy)
    const secret = entraClientSecret({ ...app, clientSecret: 's', environment, proxy: listening.origin })
    const managed = entraManagedIdentity({ environment, metadataOrigin: origin })

    expect(await failureOf(secret)).toMatch(/^https:\/\/login.microsoftonline.com cannot be called for a token/)
    expect((await ask(managed)).token).toBe('mi')
    expect(managed.slot).toBe('entra-managed-identity system')
    expect(() => entraManagedIdentity({ environment })).not.toThrow()
    await listening.close()
  })

  test('says what to set when it is refused, and repeats no secret', async () => {
    const description = 'AADSTS7000222: The provided client secret keys are expired'
    answer = ({ form }) => ({
      status: 401,
      body: { error: 'invalid_client', error_description: `${description} ${form['client_assertion'] ?? ''}` },
    })
    const secret = entraClientSecret({ ...app, clientSecret: 'secret-canary', authority: origin })
    const message = await failureOf(secret)
    expect(message).toContain(`401 invalid_client: ${description}`)
    expect(message).toContain('AZURE_CLIENT_SECRET')
    const tokenFile = fileOf('token', 'eyJhbGciOiJSUzI1NiJ9.canary.canary')
    const federated = entraWorkloadIdentity({ ...app, tokenFile, authority: origin })
    expect(await failureOf(federated)).not.toContain('canary')
    const gone = entraWorkloadIdentity({ ...app, tokenFile: join(folder, 'none'), authority: origin })
    expect(await failureOf(gone)).toMatch(/^AZURE_FEDERATED_TOKEN_FILE: .* cannot be read \(ENOENT\)$/)
    expect(() => entraClientSecret({ environment: {} })).toThrow(
      'set entraClientSecret({ tenantId }), or AZURE_TENANT_ID',
    )
  })

  test('says so when the server cannot be reached', async () => {
    await close()
    const provider = entraClientSecret({ ...app, clientSecret: 's', authority: origin })
    expect(await failureOf(provider)).toMatch(
      /cannot be called for a token \(refused: .*check the address, proxy and tls\.ca/,
    )
  })
})

describe('Google', () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  const keyFile = (): Record<string, string> => ({
    type: 'service_account',
    client_email: 'robot@p.iam.gserviceaccount.com',
    private_key: privateKey.replaceAll('\n', '\\n'),
    private_key_id: 'kid-1',
    token_uri: `${origin}/token`,
  })

  test('gives a token for a service account, by a claim of its own each time', async () => {
    const provider = googleServiceAccount({ key: JSON.stringify(keyFile()) })
    expect(await ask(provider)).toEqual({ token: 't1', expiresAtMs: NOW_MS + 3_600_000 })
    await ask(provider, NOW_MS + 3_000_000)
    const [first, second] = asked.map(({ form }) => form['assertion']!)
    expect(first).not.toBe(second)
    const [head, claims, signature] = first!.split('.') as [string, string, string]
    expect(createVerify('RSA-SHA256').update(`${head}.${claims}`).verify(publicKey, signature, 'base64url')).toBe(true)
    const read = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString())
    expect(read(head)).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'kid-1' })
    expect(read(claims)).toEqual({
      iss: 'robot@p.iam.gserviceaccount.com',
      scope: 'https://www.googleapis.com/auth/cloud-platform',
      aud: `${origin}/token`,
      iat: NOW_MS / 1000 - 30,
      exp: NOW_MS / 1000 + 3570,
    })
  })

  test('names the clock when its claim is refused by one that is 10 minutes away', async () => {
    answer = ({ form }) => {
      const claims = Buffer.from(form['assertion']!.split('.')[1]!, 'base64url').toString()
      const { iat, exp } = JSON.parse(claims) as { iat: number; exp: number }
      const serverSeconds = NOW_MS / 1000 - 600
      const isRight = iat <= serverSeconds && exp > serverSeconds
      return isRight
        ? { body: { access_token: 'wrong', expires_in: 3600 } }
        : { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid JWT: iat is in the future' } }
    }
    const message = await failureOf(googleServiceAccount({ key: keyFile() }))
    expect(message).toContain('set the clock of this machine, or renew the key of the service account')
    expect(message).toContain('400 invalid_grant: Invalid JWT')
  })

  test('reads application default credentials: the named file, that of gcloud, else the metadata server', async () => {
    const named = fileOf('key.json', JSON.stringify(keyFile()))
    await ask(googleDefaultCredentials({ environment: { GOOGLE_APPLICATION_CREDENTIALS: named } }))
    expect(asked[0]?.form['grant_type']).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer')

    const user = { type: 'authorized_user', client_id: 'c', client_secret: 's', refresh_token: 'r' }
    fileOf('application_default_credentials.json', JSON.stringify({ ...user, token_uri: `${origin}/user` }))
    await ask(googleDefaultCredentials({ environment: { CLOUDSDK_CONFIG: folder } }))
    expect(asked[1]).toMatchObject({ url: '/user', form: { grant_type: 'refresh_token', refresh_token: 'r' } })

    mkdirSync(join(folder, '.config', 'gcloud'), { recursive: true })
    fileOf(
      '.config/gcloud/application_default_credentials.json',
      JSON.stringify({ ...user, token_uri: `${origin}/home` }),
    )
    await ask(googleDefaultCredentials({ environment: { CLOUDSDK_CONFIG: '', HOME: folder } }))
    expect(asked.pop()?.url).toBe('/home')

    mkdirSync(join(folder, 'roaming', 'gcloud'), { recursive: true })
    fileOf(
      'roaming/gcloud/application_default_credentials.json',
      JSON.stringify({ ...user, token_uri: `${origin}/roaming` }),
    )
    const { platform } = process
    Object.defineProperty(process, 'platform', { value: 'win32' })
    try {
      await ask(
        googleDefaultCredentials({
          environment: { APPDATA: join(folder, 'roaming'), GCE_METADATA_HOST: origin.slice('http://'.length) },
        }),
      )
    } finally {
      Object.defineProperty(process, 'platform', { value: platform })
    }
    expect(asked.pop()?.url).toBe('/roaming')

    const environment = { CLOUDSDK_CONFIG: join(folder, 'none'), GCE_METADATA_HOST: origin.slice('http://'.length) }
    await ask(googleDefaultCredentials({ environment }))
    expect(asked[2]?.url).toBe('/computeMetadata/v1/instance/service-accounts/default/token')
    expect(asked[2]?.headers['metadata-flavor']).toBe('Google')
  })

  test('says what to do about files that it cannot use, and repeats none', async () => {
    const other = fileOf('other.json', JSON.stringify({ type: 'gdch_service_account' }))
    const environment = { GOOGLE_APPLICATION_CREDENTIALS: other }
    expect(await failureOf(googleDefaultCredentials({ environment }))).toContain(
      '"gdch_service_account" are not supported',
    )
    fileOf('other.json', 'canary {')
    expect(await failureOf(googleDefaultCredentials({ environment }))).toBe(
      'GOOGLE_APPLICATION_CREDENTIALS: is not the JSON of a key file',
    )
    expect(() => googleServiceAccount({ key: '{"private_key":"canary"}' })).toThrow(
      'client_email or private_key is missing',
    )
    const inPlace = {
      GOOGLE_APPLICATION_CREDENTIALS: JSON.stringify({ type: 'service_account', private_key: 'canary' }),
    }
    expect(await failureOf(googleDefaultCredentials({ environment: inPlace }))).toBe(
      'GOOGLE_APPLICATION_CREDENTIALS: contains the content of a file; write it to a file, and set its path',
    )
    const cut = { client_email: 'robot@example.com', private_key: '-----BEGIN PRIVATE KEY-----\ncanary' }
    expect(() => googleServiceAccount({ key: cut })).toThrow(
      /^googleServiceAccount\(\{ key \}\): private_key cannot be read: it must be whole, from BEGIN to END/,
    )
    fileOf('other.json', JSON.stringify({ type: 'service_account', ...cut }))
    expect(await failureOf(googleDefaultCredentials({ environment }))).toMatch(
      /^GOOGLE_APPLICATION_CREDENTIALS: private_key cannot be read/,
    )
  })

  test('says so when a machine has no service account', async () => {
    answer = () => ({ status: 404, body: 'no account' })
    expect(await failureOf(googleMetadata({ metadataOrigin: origin }))).toContain('assign a service account to it')
  })
})

describe('AWS', () => {
  const keys = { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' }
  const signedBy = (token: string): URL =>
    new URL(`https://${Buffer.from(token.slice('bedrock-api-key-'.length), 'base64').toString()}`)

  test('signs as the published example of a presigned URL does', () => {
    const url = presign(
      {
        method: 'GET',
        host: 'examplebucket.s3.amazonaws.com',
        path: '/test.txt',
        query: {},
        region: 'us-east-1',
        service: 's3',
        expiresSeconds: 86_400,
        payloadHash: 'UNSIGNED-PAYLOAD',
        nowMs: Date.UTC(2013, 4, 24),
      },
      keys,
    )
    expect(url).toContain('X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404')
  })

  test('makes a bearer of keys without asking a server, for as long as they last', async () => {
    const environment = { AWS_ACCESS_KEY_ID: keys.accessKeyId, AWS_SECRET_ACCESS_KEY: keys.secretAccessKey }
    const made = await ask(awsBedrock({ region: 'eu-central-1', environment }))
    expect(asked).toEqual([])
    expect(made.expiresAtMs).toBe(NOW_MS + 3_600_000)
    const url = signedBy(made.token)
    expect(url.host).toBe('bedrock.amazonaws.com')
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      Action: 'CallWithBearerToken',
      Version: '1',
      'X-Amz-Credential': `${keys.accessKeyId}/20261122/eu-central-1/bedrock/aws4_request`,
      'X-Amz-Expires': '3600',
    })
    const session = { ...keys, sessionToken: 'a+b/c==', expiration: new Date(NOW_MS + 900_000) }
    const short = await ask(awsBedrock({ region: 'eu-central-1', credentials: () => session }))
    expect(short.expiresAtMs).toBe(NOW_MS + 900_000)
    expect(signedBy(short.token).searchParams.get('X-Amz-Security-Token')).toBe('a+b/c==')
  })

  test.each([
    ['eu-west-1', 'sts.eu-west-1.amazonaws.com:443'],
    ['cn-north-1', 'sts.cn-north-1.amazonaws.com.cn:443'],
    ['eusc-de-east-1', 'sts.eusc-de-east-1.amazonaws.eu:443'],
  ])('asks the token service of %s for a web identity', async (region, host) => {
    const tunnels: unknown[] = []
    const proxy = createServer()
    proxy.on('connect', ({ url }: IncomingMessage, socket: Duplex) => {
      tunnels.push(url)
      socket.end('HTTP/1.1 403 No\r\nconnection: close\r\n\r\n')
    })
    const listening = await listen(proxy)
    const environment = {
      AWS_WEB_IDENTITY_TOKEN_FILE: fileOf('web-token', 'web-token'),
      AWS_ROLE_ARN: 'arn:aws:iam::1:role/r',
    }
    await failureOf(awsBedrock({ region, environment, proxy: listening.origin }))
    await listening.close()

    expect(tunnels).toEqual([host])
  })

  test('finds keys by web identity, in a container and on an instance', async () => {
    const expiration = new Date(NOW_MS + 1_800_000).toISOString()
    const found = { AccessKeyId: 'A', SecretAccessKey: 'S', Token: 'T', Expiration: expiration }
    answer = ({ method, url }) => {
      if (url === '/')
        return {
          body: `<R><Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>S</SecretAccessKey><SessionToken>T</SessionToken><Expiration>${expiration}</Expiration></Credentials></R>`,
        }
      if (method === 'PUT') return { body: 'imds-session' }
      return { body: url.endsWith('security-credentials/') ? 'role-1' : found }
    }
    const tokenFile = fileOf('web', 'web-token')
    for (const environment of [
      { AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile, AWS_ROLE_ARN: 'arn:aws:iam::1:role/r' },
      { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${origin}/container`, AWS_CONTAINER_AUTHORIZATION_TOKEN: 'pod-token' },
      {},
    ].map((variables) => ({ HOME: join(folder, 'none'), ...variables }))) {
      const options = { region: 'us-east-1', environment, tokenServiceOrigin: origin, instanceOrigin: origin }
      expect((await ask(awsBedrock(options))).expiresAtMs).toBe(NOW_MS + 1_800_000)
    }
    expect(asked[0]?.form).toMatchObject({ Action: 'AssumeRoleWithWebIdentity', WebIdentityToken: 'web-token' })
    expect(asked[1]?.headers.authorization).toBe('pod-token')
    expect(asked.slice(2).map(({ method, url }) => `${method} ${url}`)).toEqual([
      'PUT /latest/api/token',
      'GET /latest/meta-data/iam/security-credentials/',
      'GET /latest/meta-data/iam/security-credentials/role-1',
    ])
    expect(asked[4]?.headers['x-aws-ec2-metadata-token']).toBe('imds-session')
  })

  test('reads the keys of a profile, before those of the environment', async () => {
    const file = fileOf(
      'credentials',
      `[default]\naws_access_key_id = AKIDDEFAULT\n\n[team] # ours\naws_access_key_id=AKIDTEAM\n aws_secret_access_key = abc/+=\naws_session_token = tok==\n[sso]\nsso_session = s\n`,
    )
    const environment = {
      HOME: folder,
      AWS_SHARED_CREDENTIALS_FILE: file,
      AWS_ACCESS_KEY_ID: 'x',
      AWS_SECRET_ACCESS_KEY: 'y',
    }
    const of = (AWS_PROFILE: string) =>
      awsBedrock({ region: 'eu-west-1', environment: { ...environment, AWS_PROFILE } })

    const query = Object.fromEntries(signedBy((await ask(of('team'))).token).searchParams)
    expect(query['X-Amz-Credential']).toMatch(/^AKIDTEAM\//)
    expect(query['X-Amz-Security-Token']).toBe('tok==')
    for (const name of ['sso', 'default', 'none'])
      expect(await failureOf(of(name))).toMatch(
        new RegExp(`^AWS_PROFILE: the profile "${name}" has no keys in .*export-credentials --profile ${name}`),
      )
    const gone = { HOME: folder, AWS_PROFILE: 'team', AWS_SHARED_CREDENTIALS_FILE: join(folder, 'none') }
    expect(await failureOf(awsBedrock({ region: 'eu-west-1', environment: gone }))).toContain('ENOENT')
  })

  test('reads the profile "default" where no keys are set, and profiles of the file config, but never before a web identity', async () => {
    const aws = join(folder, '.aws')
    mkdirSync(aws, { recursive: true })
    const section = (name: string, id: string) => `[${name}]\naws_access_key_id = ${id}\naws_secret_access_key = abc\n`
    fileOf(
      '.aws/config',
      `${section('default', 'AKIDCONFIG')}region = eu-west-1\n${section('profile team', 'AKIDTEAM')}`,
    )
    answer = () => ({ status: 500, body: '' })
    // Whatever the chain would ask next is this test's own server.
    const options = { region: 'eu-west-1', tokenServiceOrigin: origin, instanceOrigin: origin }
    const idOf = async (environment: Record<string, string>) => {
      const { token } = await ask(awsBedrock({ ...options, environment: { HOME: folder, ...environment } }))
      return signedBy(token).searchParams.get('X-Amz-Credential')?.split('/')[0]
    }

    expect(await idOf({})).toBe('AKIDCONFIG')
    expect(await idOf({ AWS_PROFILE: 'team' })).toBe('AKIDTEAM')
    fileOf('.aws/credentials', section('default', 'AKIDFILE'))
    expect(await idOf({})).toBe('AKIDFILE')
    expect(await idOf({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${origin}/container` })).toBe('AKIDFILE')
    expect(await idOf({ AWS_ACCESS_KEY_ID: 'AKIDSET', AWS_SECRET_ACCESS_KEY: 's' })).toBe('AKIDSET')
    expect(asked).toEqual([])
    const web = { AWS_WEB_IDENTITY_TOKEN_FILE: fileOf('web', 'token'), AWS_ROLE_ARN: 'arn:aws:iam::1:role/r' }
    expect(await failureOf(awsBedrock({ ...options, environment: { HOME: folder, ...web } }))).toContain('AWS_ROLE_ARN')
  })

  test('reads files as the tools of AWS do: with comments behind values, quoted names and other sections', async () => {
    mkdirSync(join(folder, '.aws'), { recursive: true })
    fileOf(
      '.aws/config',
      [
        '[profile "team one"] ; quoted',
        'aws_access_key_id = AKIDONE # of the console',
        'aws_secret_access_key = a#b;c ; not these signs',
        '[profile default]',
        'aws_access_key_id = AKIDDEFAULT',
        'aws_secret_access_key = abc',
        '[profile role]',
        'role_arn = arn:aws:iam::1:role/r',
        'source_profile = role',
        '[services role]',
        'aws_access_key_id = AKIDSERVICES',
      ].join('\n'),
    )
    fileOf('.aws/credentials', '[role]\naws_access_key_id = AKIDROLE\naws_secret_access_key = abc\n')
    const of = (environment: Record<string, string>) => {
      const credentials = awsIdentity({ region: 'eu-west-1', environment: { HOME: folder, ...environment } })
      return credentials(new AbortController().signal)
    }

    expect(await of({ AWS_PROFILE: 'team one' })).toMatchObject({ accessKeyId: 'AKIDONE', secretAccessKey: 'a#b;c' })
    expect(await of({})).toMatchObject({ accessKeyId: 'AKIDDEFAULT' })
    // The keys are those that may assume the role, and another identity.
    await expect(of({ AWS_PROFILE: 'role' })).rejects.toThrow('if it uses SSO, a role or a process')
  })

  test('asks no instance where its server is switched off', async () => {
    const environment = { HOME: join(folder, 'none'), AWS_EC2_METADATA_DISABLED: 'true' }
    const options = { region: 'us-east-1', environment, instanceOrigin: origin }

    expect(await failureOf(awsBedrock(options))).toMatch(/^no AWS keys: .*\(AWS_EC2_METADATA_DISABLED\)/)
    expect(asked).toEqual([])
  })

  test('says what to set when there are no keys, they have expired, or no region is set', async () => {
    answer = () => ({ status: 404, body: '' })
    const options = { region: 'us-east-1', environment: { HOME: folder }, instanceOrigin: origin }
    expect(await failureOf(awsBedrock(options))).toContain('set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY')
    const old = { ...keys, expiration: new Date(NOW_MS - 600_000) }
    expect(await failureOf(awsBedrock({ region: 'r', credentials: () => old }))).toBe(
      'the AWS keys expired 600 s ago by the clock of this machine: sign in again, or set its clock',
    )
    expect(() => awsBedrock({ environment: {} })).toThrow('set awsBedrock({ region }), or AWS_REGION')
  })
})
