import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { chatBody, TEST_ACCOUNT } from '../../support/start-gateway.ts'
import { launchBrowser, type OpenConsole, type OpenOptions, openConsole } from './open-console.ts'

/** Each view, by the address behind `#/`. */
export const VIEWS = [
  'overview',
  'requests',
  'accounts',
  `accounts/${TEST_ACCOUNT}`,
  'models',
  'vendors',
  'tasks',
  `tasks/${TEST_ACCOUNT}`,
  'audit',
  'playground',
]

/** Registers a browser for the tests of a block; opens one console for each test, which is closed when the test is over. */
export function consoleBrowser(): (options?: OpenOptions) => Promise<OpenConsole> {
  let browser: Browser
  let opened: OpenConsole | undefined
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterEach(async () => {
    await opened?.close()
    opened = undefined
  })
  afterAll(() => browser?.close())
  return async (options = {}) => {
    opened = await openConsole(browser, options)
    return opened
  }
}

/** Makes a call as the test account, and resolves with its request id when it has ended. */
export async function callThrough(console: OpenConsole, text: string): Promise<string> {
  const response = await console.post('/v1/chat/completions', chatBody('cl-sonnet-4-6', text))
  await response.text()
  await console.ended(response)
  return response.headers.get('x-request-id') ?? ''
}
