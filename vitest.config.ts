import { configDefaults, defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // Two cores: more workers only take turns, and timing-sensitive socket tests suffer from it.
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: 'source',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, 'test/package/**'],
          // Lends servers to the tests that ask for one; starts nothing by itself.
          globalSetup: 'test/support/real-servers.setup.ts',
        },
      },
      {
        extends: true,
        test: {
          name: 'package',
          include: ['test/package/**/*.test.ts'],
          // Packs what `npm test` has built, once, and only when these tests run.
          globalSetup: 'test/package/packed.setup.ts',
        },
      },
    ],
  },
})
