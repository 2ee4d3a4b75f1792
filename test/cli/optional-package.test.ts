import { expect, test } from 'vitest'
import { loadOptionalPackage } from '../../src/cli/optional-package.ts'
import { SettingError } from '../../src/cli/setting-error.ts'

test('a package that is not installed is named with the setting that asks for it', async () => {
  const load = loadOptionalPackage('a-package-nobody-has-installed', 'REDIS_URL')

  await expect(load).rejects.toThrow(
    new SettingError(
      'REDIS_URL: needs the package a-package-nobody-has-installed; install it beside signalbox (npm install a-package-nobody-has-installed)',
    ),
  )
})

test('a package that is installed is loaded', async () => {
  expect(await loadOptionalPackage('node:path', 'SIGNALBOX_STORE')).toHaveProperty('join')
})
