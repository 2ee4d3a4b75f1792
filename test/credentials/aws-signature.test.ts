import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { canonicalQuery, requestSigner, signatureOf, signingKey } from '../../src/credentials/aws-signature.ts'

const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const NOW_MS = Date.UTC(2015, 7, 30, 12, 36)
const HEADERS = [
  ['host', 'example.amazonaws.com'],
  ['x-amz-date', '20150830T123600Z'],
] as const
const FORM = ['content-type', 'application/x-www-form-urlencoded'] as const
const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Cases of AWS's test suite of Signature Version 4, and the worked example of its documentation. */
const PUBLISHED = [
  ['get-vanilla', {}, '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
  ['post-vanilla', { method: 'POST' }, '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
  [
    'get-vanilla-query-order-key-case',
    { query: 'Param2=value2&Param1=value1' },
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  ],
  [
    'get-unreserved',
    { path: '/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' },
    '07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f',
  ],
  ['get-utf8', { path: '/ሴ' }, '8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85'],
  [
    'post-x-www-form-urlencoded',
    { method: 'POST', headers: [FORM, ...HEADERS], payloadHash: hashOf('Param1=value1') },
    'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  ],
  [
    'the example of the documentation',
    {
      query: 'Action=ListUsers&Version=2010-05-08',
      service: 'iam',
      headers: [
        ['content-type', 'application/x-www-form-urlencoded; charset=utf-8'],
        ['host', 'iam.amazonaws.com'],
        ['x-amz-date', '20150830T123600Z'],
      ],
    },
    '5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7',
  ],
] as const

describe('signatures are the published ones', () => {
  test.each(PUBLISHED)('%s', (_, given, signature) => {
    const { service, ...request } = {
      ...{ method: 'GET', path: '/', query: '', headers: HEADERS, payloadHash: hashOf(''), service: 'service' },
      ...given,
    }
    const scope = { region: 'us-east-1', service }

    expect(signatureOf(request, scope, NOW_MS, signingKey(SECRET, '20150830', scope))).toBe(signature)
  })

  test('sorts the query by its names, of which one may begin with another', () => {
    expect(
      canonicalQuery([
        ['tag-id', '1'],
        ['tag', 'b'],
        ['tag', 'a'],
      ]),
    ).toBe('tag=a&tag=b&tag-id=1')
  })

  test('derives the published key of a day', () => {
    expect(signingKey(SECRET, '20150830', { region: 'us-east-1', service: 'iam' }).toString('hex')).toBe(
      'c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9',
    )
  })
})

describe('a signed request', () => {
  const identity = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: SECRET, sessionToken: 'session/token==' }
  const request = {
    method: 'POST',
    origin: 'https://bedrock-runtime.us-east-1.amazonaws.com',
    path: '/model/a.b-v1%3A0/converse?tag=a%20b',
    headers: ['content-type', 'application/json', 'x-team', 'search', 'accept', '*/*'],
    body: '{}',
    nowMs: NOW_MS,
  }
  const sign = requestSigner(identity, { region: 'us-east-1', service: 'bedrock' })
  const headersOf = (changed: Partial<typeof request> & { body?: string | readonly Uint8Array[] } = {}) => {
    const flat = sign({ ...request, ...changed })
    return Object.fromEntries(flat.flatMap((name, place) => (place % 2 === 0 ? [[name, flat[place + 1]]] : [])))
  }

  test('carries a fixed set of signed headers, whatever else is sent', () => {
    const headers = headersOf()

    expect(Object.keys(headers)).toEqual([
      'x-amz-content-sha256',
      'x-amz-date',
      'x-amz-security-token',
      'authorization',
    ])
    expect(headers['authorization']).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/20150830\/us-east-1\/bedrock\/aws4_request, SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=[0-9a-f]{64}$/,
    )
    expect(headersOf({ headers: [...request.headers, 'x-more', '1'] })).toEqual(headers)
  })

  test('is another one with another path, query, body, host or time', () => {
    const signatures = [
      headersOf(),
      headersOf({ path: '/model/a.b-v1:0/converse?tag=a%20b' }),
      headersOf({ path: '/model/a.b-v1%3A0/converse?tag=b' }),
      headersOf({ body: '{ }' }),
      headersOf({ origin: 'https://bedrock-runtime.us-east-1.amazonaws.com:8443' }),
      headersOf({ nowMs: NOW_MS + 1_000 }),
      headersOf({ nowMs: NOW_MS + 86_400_000 }),
    ].map(({ authorization }) => authorization)

    expect(new Set(signatures).size).toBe(signatures.length)
  })

  test('in pieces is signed as the whole', () => {
    expect(headersOf({ body: [Buffer.from('{'), Buffer.from('}')] as never })).toEqual(headersOf())
  })
})
