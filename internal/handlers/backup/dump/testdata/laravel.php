<?php

// Makes the tables of Laravel's own migrations, as `php artisan migrate` does in a
// new application, and some of what a CMS's migrations use besides.

require '/usr/share/php/Illuminate/autoload.php';

use Illuminate\Database\Capsule\Manager as Capsule;
use Illuminate\Database\Schema\Blueprint;

$capsule = new Capsule();
$capsule->addConnection(['driver' => 'mysql', 'host' => '127.0.0.1', 'port' => getenv('DB_PORT'), 'database' => getenv('DB_DATABASE'),
    'username' => 'root', 'password' => '', 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'strict' => true]);
$schema = $capsule->getConnection()->getSchemaBuilder();

$schema->create('users', function (Blueprint $table) {
    $table->id();
    $table->string('name');
    $table->string('email')->unique();
    $table->timestamp('email_verified_at')->nullable();
    $table->string('password');
    $table->rememberToken();
    $table->timestamps();
});
$schema->create('password_reset_tokens', function (Blueprint $table) {
    $table->string('email')->primary();
    $table->string('token');
    $table->timestamp('created_at')->nullable();
});
$schema->create('sessions', function (Blueprint $table) {
    $table->string('id')->primary();
    $table->foreignId('user_id')->nullable()->index();
    $table->string('ip_address', 45)->nullable();
    $table->text('user_agent')->nullable();
    $table->longText('payload');
    $table->integer('last_activity')->index();
});
$schema->create('cache', function (Blueprint $table) {
    $table->string('key')->primary();
    $table->mediumText('value');
    $table->integer('expiration');
});
$schema->create('jobs', function (Blueprint $table) {
    $table->id();
    $table->string('queue')->index();
    $table->longText('payload');
    $table->unsignedTinyInteger('attempts');
    $table->unsignedInteger('reserved_at')->nullable();
    $table->unsignedInteger('available_at');
    $table->unsignedInteger('created_at');
});
$schema->create('failed_jobs', function (Blueprint $table) {
    $table->id();
    $table->string('uuid')->unique();
    $table->text('connection');
    $table->text('queue');
    $table->longText('payload');
    $table->longText('exception');
    $table->timestamp('failed_at')->useCurrent();
});
$schema->create('posts', function (Blueprint $table) {
    $table->id();
    $table->foreignId('author_id')->constrained('users')->cascadeOnDelete();
    $table->string('name')->comment("it's the title");
    $table->string('description', 400)->nullable();
    $table->longText('content')->nullable()->fulltext();
    $table->enum('status', ['published', 'draft'])->default('published');
    $table->json('options')->nullable();
    $table->string('slug')->virtualAs('lower(name)');
    $table->decimal('price', 15, 2)->default(0);
    $table->boolean('is_featured')->default(false);
    $table->timestamps();
    $table->softDeletes();
    $table->index(['status', 'created_at']);
});
$capsule->getConnection()->insert("insert into users (name, email, password) values ('Ann', 'ann@example.org', 'x')");
$capsule->getConnection()->insert("insert into posts (author_id, name, options) values (1, 'Grüße 🎉', '{\"a\": 1.5}')");
