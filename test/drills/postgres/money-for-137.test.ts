import { describe, test } from 'vitest'
import { realServer } from '../../support/real-servers.ts'
import { sendToFourProcesses } from '../support/money-for-137-drill.ts'

const postgres = await realServer('postgres')

describe.skipIf(postgres.missing !== undefined)(
  'of many parallel requests to 4 processes on one account with money for 137',
  () => {
    const send = sendToFourProcesses()

    test('exactly 137 reach the vendor on one PostgreSQL', { timeout: 120_000 }, () => send(postgres.url))
  },
)
