import { describe, expect, test } from 'vitest'
import { realServer } from './real-servers.ts'

const postgres = await realServer('postgres')
const redis = await realServer('redis')

describe('real servers', () => {
  test.each([
    ['postgres', postgres],
    ['redis', redis],
  ] as const)('lend %s under one address, or say why not', async (kind, server) => {
    expect(await realServer(kind)).toEqual(server)
    expect(server.url === '').toBe(server.missing !== undefined)
  })
})
