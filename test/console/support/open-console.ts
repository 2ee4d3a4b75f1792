import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { nodeHandler } from '../../../src/adapters/node.ts'
import { type ConsoleHandlerOptions, consoleHandler } from '../../../src/console/console-handler.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { OPERATOR_KEY } from '../../admin/support/start-admin.ts'
import { listen } from '../../support/listen.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']
const paths = (process.env['PATH'] ?? '').split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name)))

/** Undefined where the machine has no Chromium. */
export const executablePath: string | undefined = paths.find((path) => existsSync(path))

/** Starts the browser; one for all tests of a file. */
export function launchBrowser(): Promise<Browser> {
  // Root may not use the sandbox of Debian's Chromium.
  return chromium.launch({ executablePath: executablePath!, args: ['--no-sandbox', '--disable-gpu'] })
}

/** The console of a gateway, open in a browser. */
export interface OpenConsole extends StartedGateway {
  readonly page: Page
  /** `http://127.0.0.1:…/console/` */
  readonly address: string
  /** Errors in the page, and its requests to other origins. */
  readonly faults: readonly string[]
  /** Goes to a view, and waits until it has been read. */
  show(view: string): Promise<void>
}

export interface OpenOptions {
  readonly gateway?: Partial<GatewayOptions>
  readonly console?: ConsoleHandlerOptions
  readonly viewport?: { readonly width: number; readonly height: number }
  readonly colorScheme?: 'light' | 'dark'
}

/** Opens one and gives it the operator's key. */
export async function openConsole(browser: Browser, options: OpenOptions = {}): Promise<OpenConsole> {
  const started = await startGateway(options.gateway)
  const operatorKeys = [{ name: 'ops', key: OPERATOR_KEY }]
  const handler = consoleHandler(started.gateway, { operatorKeys, ...options.console })
  const mounted = await listen(nodeHandler(handler, { basePath: '/console' }))
  const address = `${mounted.origin}/console/`
  const context = await browser.newContext({
    viewport: options.viewport ?? { width: 1280, height: 900 },
    colorScheme: options.colorScheme ?? 'light',
    locale: 'en-GB',
    timezoneId: 'UTC',
  })
  const page = await context.newPage()
  page.setDefaultTimeout(10_000)
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`))
  page.on('console', (message) => {
    // An answer of 401 opens the form for the key.
    if (message.type() === 'error' && !message.text().includes('401')) faults.push(`console: ${message.text()}`)
  })
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(address) && !url.startsWith('data:') && !url.startsWith('blob:')) faults.push(`request: ${url}`)
  })
  await page.goto(address)
  // The host's own check may know the operator already.
  if (options.console?.authorize === undefined) {
    await page.getByLabel('Operator key').fill(OPERATOR_KEY)
    await page.getByRole('button', { name: 'Open' }).click()
  }
  await page.getByRole('navigation', { name: 'Views' }).waitFor()
  return {
    ...started,
    page,
    address,
    faults,
    async show(view) {
      await page.evaluate((hash) => {
        location.hash = hash
      }, `#/${view}`)
      await page.waitForFunction(
        () => document.querySelector('[role=status]')?.textContent?.startsWith('Loading') !== true,
      )
    },
    async close() {
      await context.close()
      await mounted.close()
      await started.close()
    },
  }
}
