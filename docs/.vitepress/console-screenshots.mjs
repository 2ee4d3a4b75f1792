// Takes the screenshots of docs/console.md: starts the built gateway with stand-ins and examples, and opens its console in Chromium.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { chromium } from 'playwright-core'

const root = join(import.meta.dirname, '../..')
const folder = join(root, 'docs/public/console')
const names = ['chromium', 'chromium-browser', 'google-chrome']
const paths = (process.env.PATH ?? '').split(delimiter).flatMap((path) => names.map((name) => join(path, name)))
const executablePath = paths.find((path) => existsSync(path))
if (executablePath === undefined) throw new Error('no Chromium on this machine')

const command = ['dist/cli.js', 'serve', '--sandbox', '--console', '--examples']
const server = spawn(process.execPath, command, {
  cwd: root,
  env: { ...process.env, PORT: '0' },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
try {
  const { address, key } = await announced(server)
  mkdirSync(folder, { recursive: true })
  await take({ address, key, name: 'overview', view: 'overview', seen: 'Latency, median' })
  await take({ address, key, name: 'overview-dark', view: 'overview', seen: 'Latency, median', colorScheme: 'dark' })
  await take({
    address,
    key,
    name: 'request',
    view: 'requests?account=acct_shop&model=gemini-3.8-flash',
    seen: 'completed',
    open: true,
  })
  await take({ address, key, name: 'account', view: 'accounts/acct_shop', seen: 'Statement of' })
  await take({
    address,
    key,
    name: 'narrow',
    view: 'requests',
    seen: 'completed',
    viewport: { width: 360, height: 740 },
  })
} finally {
  await browser.close()
  server.kill('SIGTERM')
}

/** The address and the key that the server prints. */
async function announced({ stdout }) {
  let address = ''
  for await (const line of createInterface(stdout)) {
    address = /^console {3}(\S+)/.exec(line)?.[1] ?? address
    const [, key] = /^operator {2}(\S+)/.exec(line) ?? []
    if (key !== undefined) return { address, key }
  }
  throw new Error('the server has not printed the address of its console')
}

async function take({
  address,
  key,
  name,
  view,
  seen,
  open = false,
  colorScheme = 'light',
  viewport = { width: 1200, height: 860 },
}) {
  const page = await browser.newPage({ colorScheme, viewport, locale: 'en-GB', timezoneId: 'UTC' })
  await page.goto(`${address}#/${view}`)
  await page.getByLabel('Operator key').fill(key)
  await page.getByRole('button', { name: 'Open' }).click()
  await page.locator('td, dt, h2').getByText(seen).first().waitFor()
  if (open) {
    // The one that a second attempt answered.
    for (const row of await page.getByRole('row').filter({ hasText: 'completed' }).all()) {
      await row.getByRole('link').first().click()
      await page.getByRole('table', { name: 'Attempts' }).waitFor()
      if ((await page.getByRole('table', { name: 'Attempts' }).getByText('failed').count()) > 0) break
      await page.goBack()
      await page.locator('td, dt, h2').getByText(seen).first().waitFor()
    }
  }
  await page.waitForLoadState('networkidle')
  await page.screenshot({ path: join(folder, `${name}.jpg`), type: 'jpeg', quality: 70 })
  await page.close()
}
